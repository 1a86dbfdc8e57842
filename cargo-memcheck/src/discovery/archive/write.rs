//! Writes an archive.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::ArchiveError;
use super::format::{
    ArchiveHeader, ArchivePage, HEADER_LIMIT, PAGE, PAGE_LIMIT, PackedFile, WINDOWS, largest_total,
};
use super::interruptible::Interruptible;
use crate::system::files::Replacement;
use crate::system::process::Interrupt;

/// zstd's own default. Higher levels take much longer and save little.
const LEVEL: i32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveEntry {
    pub(super) name: PathBuf,
    pub(super) source: EntrySource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntrySource {
    File(PathBuf),
    Text(String),
}

/// Describes the entries for the page, which is written before them.
pub(super) fn measure(entries: &[ArchiveEntry]) -> Result<Vec<PackedFile>, ArchiveError> {
    let one = |entry: &ArchiveEntry| {
        let name = entry.name.to_str().ok_or_else(|| {
            ArchiveError::Name(entry.name.clone(), "the name is not UTF-8".to_owned())
        })?;
        let (bytes, executable) = match &entry.source {
            EntrySource::Text(text) => (text.len() as u64, false),
            EntrySource::File(file) => {
                let metadata =
                    fs::metadata(file).map_err(|error| ArchiveError::Io(file.to_owned(), error))?;
                (metadata.len(), metadata.permissions().mode() & 0o111 != 0)
            }
        };
        Ok(PackedFile { name: name.to_owned(), bytes, executable })
    };
    entries.iter().map(one).collect()
}

/// Writes to a temporary file and renames it, so that no incomplete archive has its name. Returns
/// the size in bytes. The files of the page must be those of [`measure`].
pub(super) fn write<P: ArchivePage>(
    path: &Path,
    id: &str,
    page: &P,
    entries: &[ArchiveEntry],
    interrupt: &Interrupt,
) -> Result<u64, ArchiveError> {
    let io = |error| match interrupt.is_set() {
        true => ArchiveError::Interrupted,
        false => ArchiveError::Io(path.to_owned(), error),
    };
    // The reader has the same rules.
    page.check().map_err(|why| ArchiveError::Name(path.to_owned(), why))?;
    let json = serde_json::to_vec(page).map_err(|error| io(error.into()))?;
    let bytes = json.len() as u64;
    if bytes > PAGE_LIMIT {
        return Err(ArchiveError::TooLarge(path.to_owned(), "its list of files", PAGE_LIMIT));
    }
    let header = serde_json::to_vec(&ArchiveHeader::new(id, bytes)).map_err(|e| io(e.into()))?;
    assert!(header.len() as u64 <= HEADER_LIMIT, "the header has short fields only");
    let mut unfinished = Replacement::new(path).map_err(io)?;
    let mut zstd = zstd::Encoder::new(BufWriter::new(unfinished.file()), LEVEL).map_err(io)?;
    // The reader then notices a damaged copy.
    zstd.include_checksum(true).map_err(io)?;
    // Otherwise zstd does not find repetitions that are as far away as the executable before.
    zstd.long_distance_matching(true).map_err(io)?;
    zstd.window_log(window(page.files())).map_err(io)?;
    let mut tar = tar::Builder::new(zstd);
    let document = |name: &str, bytes: usize| PackedFile {
        name: name.to_owned(),
        bytes: bytes as u64,
        executable: false,
    };
    add(&mut tar, &document(P::NAME, header.len()), &header[..]).map_err(io)?;
    add(&mut tar, &document(PAGE, json.len()), &json[..]).map_err(io)?;
    for (entry, file) in entries.iter().zip(page.files()) {
        match &entry.source {
            EntrySource::Text(text) => add(&mut tar, file, text.as_bytes()).map_err(io)?,
            EntrySource::File(source) => {
                let io = |error| match interrupt.is_set() {
                    true => ArchiveError::Interrupted,
                    false => ArchiveError::Io(source.clone(), error),
                };
                let contents = File::open(source).map_err(io)?;
                add(&mut tar, file, Interruptible::new(contents, interrupt)).map_err(io)?;
            }
        }
    }
    tar.into_inner()
        .and_then(zstd::Encoder::finish)
        .and_then(|mut file| io::Write::flush(&mut file))
        .map_err(io)?;
    let size = unfinished.file().metadata().map_err(io)?.len();
    let allowed = largest_total(size);
    if page.files().iter().map(|file| file.bytes).sum::<u64>() > allowed {
        return Err(ArchiveError::TooLarge(path.to_owned(), "the sum of its files", allowed));
    }
    unfinished.commit().map_err(io)?;
    Ok(size)
}

/// The window finds the repetitions between a file and the next one.
fn window(files: &[PackedFile]) -> u32 {
    let largest = files.iter().map(|file| file.bytes).max().unwrap_or(0);
    // Adds a quarter, because similar files differ in length.
    let far = largest.saturating_add(largest / 4).max(1);
    far.next_power_of_two().ilog2().clamp(*WINDOWS.start(), *WINDOWS.end())
}

/// The same files yield the same archive: the header has neither a time nor a user. A file with
/// holes is stored like any other, because zstd compresses zeros to almost nothing.
fn add<W: io::Write>(
    tar: &mut tar::Builder<W>,
    file: &PackedFile,
    contents: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(file.bytes);
    header.set_mode(file.mode());
    let mut exactly = Exactly { contents, left: file.bytes };
    tar.append_data(&mut header, &file.name, &mut exactly)
}

/// Fails if there are more or fewer bytes than the page declares.
struct Exactly<R> {
    contents: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.contents.read(buffer)?;
        let changed = || io::Error::other("the file changed while it was packed");
        self.left = self.left.checked_sub(read as u64).ok_or_else(changed)?;
        match read == 0 && self.left > 0 && !buffer.is_empty() {
            true => Err(changed()),
            false => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_farther_than_the_largest_file() {
        let of = |bytes: u64| {
            let file = |bytes| PackedFile { name: "a".to_owned(), bytes, executable: false };
            window(&[file(1000), file(bytes)])
        };
        for (mib, log) in [(1, 27), (102, 27), (103, 28), (150, 28), (205, 29), (4000, 30)] {
            assert_eq!(of(mib << 20), log, "{mib} MiB");
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_packed_is_an_error() {
        for (declared, there) in [(3, "1234"), (5, "1234")] {
            let mut read = Exactly { contents: there.as_bytes(), left: declared };
            let error = io::copy(&mut read, &mut io::sink()).unwrap_err();
            assert!(error.to_string().contains("changed"), "{error}");
        }
        let mut read = Exactly { contents: "1234".as_bytes(), left: 4 };
        assert_eq!(io::copy(&mut read, &mut io::sink()).unwrap(), 4);
    }
}
