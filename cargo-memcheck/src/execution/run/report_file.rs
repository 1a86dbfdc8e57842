//! Reads the file of a record. A test can write anything there, so that the size is limited and
//! only a regular file is read.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use memcheck_core::runs::process_end::Written;
use memcheck_core::size::Size;
use memcheck_core::wire::protocol::{LARGEST_REPORT, refusal};

pub(super) fn read(report: &Path) -> io::Result<Written> {
    match bytes(report, LARGEST_REPORT) {
        Err(error) if matches!(error.kind(), ErrorKind::FileTooLarge | ErrorKind::InvalidInput) => {
            Ok(Written::Unsound(format!("the record of the test cannot be read: {error}")))
        }
        result => Written::from_files(result, || bytes(&refusal(report), LARGEST_REPORT)),
    }
}

fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening must not wait if the file is a named pipe.
    let flags = nix::libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= most {
        // The file may grow meanwhile.
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    let size = metadata.len().max(bytes.len() as u64);
    if size > most {
        let why = format!("it has {}, and the most is {}", Size(size), Size(most));
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_too_large_or_not_a_regular_file_is_refused_without_being_read() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.json");
        assert_eq!(read(&report).unwrap(), Written::Nothing);
        let unsound = |expected: &str| match read(&report).unwrap() {
            Written::Unsound(why) => assert!(why.ends_with(expected), "{why}"),
            other => panic!("{other:?}"),
        };
        // A file with a hole takes no space, and reading it would take 1 GiB.
        File::create(&report).unwrap().set_len(1 << 30).unwrap();
        unsound("it has 1.0 GiB, and the most is 512.0 MiB");
        std::fs::remove_file(&report).unwrap();
        std::fs::create_dir(&report).unwrap();
        unsound("it is not a regular file");
        std::fs::remove_dir(&report).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&report).status();
        assert!(made.is_ok_and(|status| status.success()));
        unsound("it is not a regular file");
        std::fs::remove_file(&report).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &report).unwrap();
        unsound("it is not a regular file");
    }
}
