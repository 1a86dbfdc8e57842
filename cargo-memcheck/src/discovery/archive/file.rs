//! The file format of an archive: tar in zstd. The first entry is a JSON document that describes
//! the files that follow.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use memcheck_core::size::counted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ArchiveError;
use crate::system::process::Interrupt;

/// A reader refuses every other version.
pub(super) const VERSION: u32 = 1;
/// zstd's own default. Higher levels take much longer and save little.
const LEVEL: i32 = 3;
/// Powers of two. Consecutive executables have most content in common, so the window must be longer
/// than the largest file. zstd unpacks up to the minimum, 128 MiB, without `--long`. Packing and
/// unpacking allocate as much memory.
const WINDOWS: RangeInclusive<u32> = 27..=30;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArchiveHeader {
    pub(super) version: u32,
    pub(super) memcheck: String,
    /// Hash of the executables, the same in an archive and in the archive of its line tables.
    pub(super) id: String,
    pub(super) files: usize,
}

impl ArchiveHeader {
    pub(super) fn new(id: String, files: usize) -> Self {
        Self { version: VERSION, memcheck: env!("CARGO_PKG_VERSION").to_owned(), id, files }
    }
}

pub(super) trait Page: Serialize + DeserializeOwned {
    const NAME: &'static str;
    const KIND: &'static str;
    fn head(&self) -> &ArchiveHeader;
}

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

/// Writes to a temporary file and renames it, so that no incomplete archive has its name. Returns
/// the size in bytes.
pub(super) fn write<P: Page>(
    path: &Path,
    page: &P,
    entries: &[ArchiveEntry],
) -> Result<u64, ArchiveError> {
    let io = |error| ArchiveError::Io(path.to_owned(), error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(io)?;
    let unfinished = tempfile::Builder::new()
        .prefix(".memcheck-archive-")
        // A temporary file is only for its owner, but an archive must have the permissions of an
        // ordinary file.
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(io)?;
    let mut zstd = zstd::Encoder::new(BufWriter::new(unfinished.as_file()), LEVEL).map_err(io)?;
    zstd.include_checksum(true).map_err(io)?;
    zstd.long_distance_matching(true).map_err(io)?;
    zstd.window_log(window(entries)).map_err(io)?;
    let mut tar = tar::Builder::new(zstd);
    // The same executables must yield the same archive.
    tar.mode(tar::HeaderMode::Deterministic);
    // Files with holes are stored as ordinary files, because zstd compresses zeros to almost
    // nothing.
    tar.sparse(false);
    let json = serde_json::to_vec(page).map_err(|error| io(error.into()))?;
    add_bytes(&mut tar, Path::new(P::NAME), &json).map_err(io)?;
    for ArchiveEntry { name, source } in entries {
        if Interrupt::has_come() {
            return Err(io(io::ErrorKind::Interrupted.into()));
        }
        match source {
            EntrySource::Text(text) => add_bytes(&mut tar, name, text.as_bytes()).map_err(io)?,
            EntrySource::File(file) => tar
                .append_path_with_name(file, name)
                .map_err(|error| ArchiveError::Io(file.clone(), error))?,
        }
    }
    tar.into_inner()
        .and_then(zstd::Encoder::finish)
        .and_then(|mut file| io::Write::flush(&mut file))
        .map_err(io)?;
    let size = unfinished.as_file().metadata().map_err(io)?.len();
    unfinished.persist(path).map_err(|error| io(error.error))?;
    Ok(size)
}

/// The window finds the repetitions between a file and the next one.
fn window(entries: &[ArchiveEntry]) -> u32 {
    let length = |entry: &ArchiveEntry| match &entry.source {
        EntrySource::Text(text) => text.len() as u64,
        EntrySource::File(file) => fs::metadata(file).map_or(0, |metadata| metadata.len()),
    };
    let largest = entries.iter().map(length).max().unwrap_or(0);
    // Adds a quarter, because similar files differ in length.
    let far = largest.saturating_add(largest / 4).max(1);
    far.next_power_of_two().ilog2().clamp(*WINDOWS.start(), *WINDOWS.end())
}

fn add_bytes<W: io::Write>(tar: &mut tar::Builder<W>, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes)
}

/// Extracts the other entries to `folder` only if `check` accepts the first page.
pub(super) fn read<P: Page>(
    path: &Path,
    folder: &Path,
    check: impl FnOnce(&P) -> Result<(), ArchiveError>,
) -> Result<P, ArchiveError> {
    let unreadable = |error| ArchiveError::Unreadable(path.to_owned(), error);
    let other = || ArchiveError::NotAnArchive(path.to_owned(), P::KIND);
    let torn = |error: io::Error| ArchiveError::Damaged(path.to_owned(), error.to_string());
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let buffered = io::BufRead::fill_buf(&mut file).map_err(unreadable)?;
    if !buffered.starts_with(&MAGIC) {
        return Err(other());
    }
    let mut zstd = zstd::Decoder::with_buffer(file).map_err(torn)?;
    zstd.window_log_max(*WINDOWS.end()).map_err(torn)?;
    let mut tar = tar::Archive::new(zstd);
    let mut entries = tar.entries().map_err(torn)?;
    let mut first = entries.next().ok_or_else(other)?.map_err(torn)?;
    if first.path().map_err(torn)? != Path::new(P::NAME) {
        return Err(other());
    }
    let mut json = Vec::new();
    first.read_to_end(&mut json).map_err(torn)?;
    let page = page::<P>(path, &json)?;
    check(&page)?;
    let mut files = 0;
    for entry in entries {
        let mut entry = entry.map_err(torn)?;
        let name = entry.path().map_err(torn)?.into_owned();
        let wrong = |why: &str| {
            ArchiveError::Damaged(path.to_owned(), format!("{}: {why}", name.display()))
        };
        if !entry.header().entry_type().is_file() {
            return Err(wrong("it is not a file"));
        }
        // False for a name that leads out of the folder.
        let unpacked =
            entry.unpack_in(folder).map_err(|error| extracting(folder, &name, path, error))?;
        if !unpacked {
            return Err(wrong("its path leads out of the folder"));
        }
        files += 1;
    }
    // The stream must be read to its end, because zstd verifies the checksum there.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(torn)?;
    let expected = page.head().files;
    if files != expected {
        let why = format!("{} instead of {expected}", counted(files as u64, "file", "files"));
        return Err(ArchiveError::Damaged(path.to_owned(), why));
    }
    Ok(page)
}

/// tar wraps the error of a file that it writes, so the chain of sources is searched for the
/// system's error code.
fn extracting(folder: &Path, name: &Path, archive: &Path, error: io::Error) -> ArchiveError {
    let mut cause: &dyn std::error::Error = &error;
    let mut os = error.raw_os_error();
    while let Some(source) = cause.source() {
        cause = source;
        os = os.or_else(|| source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error));
    }
    match os {
        Some(code) => ArchiveError::Io(folder.join(name), io::Error::from_raw_os_error(code)),
        None => ArchiveError::Damaged(archive.to_owned(), format!("{}: {cause}", name.display())),
    }
}

/// The version is parsed first, because another version can have other fields.
fn page<P: Page>(path: &Path, json: &[u8]) -> Result<P, ArchiveError> {
    #[derive(Deserialize)]
    struct ArchiveVersion {
        version: u32,
        memcheck: String,
    }
    let torn = |error: serde_json::Error| ArchiveError::Damaged(path.to_owned(), error.to_string());
    let ArchiveVersion { version, memcheck } = serde_json::from_slice(json).map_err(torn)?;
    let ours = env!("CARGO_PKG_VERSION");
    if version != VERSION || memcheck != ours {
        let what = format!("{memcheck} (format {version}), this is {ours} (format {VERSION})");
        return Err(ArchiveError::Version(path.to_owned(), what));
    }
    serde_json::from_slice(json).map_err(torn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::error::CommandError;
    use memcheck_core::wire::exit;

    #[derive(Debug, Serialize, Deserialize)]
    struct Example {
        #[serde(flatten)]
        head: ArchiveHeader,
    }

    impl Page for Example {
        const NAME: &'static str = "example.json";
        const KIND: &'static str = "an example";
        fn head(&self) -> &ArchiveHeader {
            &self.head
        }
    }

    fn example(files: usize) -> Example {
        Example { head: ArchiveHeader::new("1".to_owned(), files) }
    }

    fn text(name: &str) -> ArchiveEntry {
        ArchiveEntry { name: name.into(), source: EntrySource::Text("figures\n".repeat(1000)) }
    }

    fn refused(path: &Path, folder: &Path) -> (u8, String) {
        let error = read::<Example>(path, folder, |_| Ok(())).unwrap_err();
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn packed_files_are_extracted() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("new/a.tar.zst"), folder.path().join("to"));
        fs::create_dir(&to).unwrap();
        let program =
            ArchiveEntry { name: "cpu/sh".into(), source: EntrySource::File("/bin/sh".into()) };
        let size = write(&path, &example(2), &[text("workspace/a.snap"), program]).unwrap();
        assert_eq!(size, fs::metadata(&path).unwrap().len());
        read::<Example>(&path, &to, |_| Ok(())).unwrap();
        assert!(fs::read_to_string(to.join("workspace/a.snap")).unwrap().starts_with("figures"));
        assert_eq!(fs::read(to.join("cpu/sh")).unwrap(), fs::read("/bin/sh").unwrap());
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(to.join("cpu/sh")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o111, 0o111, "it can be started");
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
    }

    #[test]
    fn repeated_content_of_two_files_is_compressed() {
        let folder = tempfile::tempdir().unwrap();
        // 12 MiB of bytes that cannot be compressed, from a linear congruential generator. This is
        // more than the window that zstd chooses by default at this level.
        let mut state = 1_u64;
        let mut noise = Vec::new();
        while noise.len() < 12 << 20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise.extend_from_slice(&state.to_be_bytes()[..4]);
        }
        let source = folder.path().join("noise");
        fs::write(&source, &noise).unwrap();
        let packed = |count: usize| {
            let entry = |n| ArchiveEntry {
                name: format!("{n}").into(),
                source: EntrySource::File(source.clone()),
            };
            let entries: Vec<ArchiveEntry> = (0..count).map(entry).collect();
            let path = folder.path().join(format!("{count}.tar.zst"));
            let size = write(&path, &example(count), &entries).unwrap();
            let to = folder.path().join(format!("to-{count}"));
            fs::create_dir(&to).unwrap();
            read::<Example>(&path, &to, |_| Ok(())).unwrap();
            assert_eq!(fs::read(to.join((count - 1).to_string())).unwrap(), noise);
            size
        };
        let (one, three) = (packed(1), packed(3));
        assert!(one > 11 << 20, "{one}");
        assert!(three < one + one / 10, "{one} for one, {three} for three");
    }

    #[test]
    fn the_window_is_farther_than_the_largest_file() {
        let folder = tempfile::tempdir().unwrap();
        let of = |bytes: u64| {
            // The file is sparse, so no data is written to the disk.
            let path = folder.path().join(bytes.to_string());
            File::create(&path).unwrap().set_len(bytes).unwrap();
            window(&[text("a"), ArchiveEntry { name: "b".into(), source: EntrySource::File(path) }])
        };
        for (mib, log) in [(1, 27), (102, 27), (103, 28), (150, 28), (205, 29), (4000, 30)] {
            assert_eq!(of(mib << 20), log, "{mib} MiB");
        }
    }

    #[test]
    fn other_files_and_truncated_archives_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("a.tar.zst"), folder.path());
        assert_eq!(refused(&path, to).0, exit::USAGE);
        fs::write(&path, "no archive").unwrap();
        assert_eq!(refused(&path, to).0, exit::USAGE);
        write(&path, &example(1), &[text("a")]).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in [whole.len() / 2, whole.len() - 1, 20] {
            fs::write(&path, &whole[..cut]).unwrap();
            let (code, message) = refused(&path, to);
            assert_eq!(code, exit::NOT_MEASURED, "{cut}: {message}");
            assert!(message.contains("cut off or damaged"), "{message}");
        }
        for at in [whole.len() / 2, whole.len() - 2] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            fs::write(&path, damaged).unwrap();
            assert_eq!(refused(&path, to).0, exit::NOT_MEASURED, "{at}");
        }
        write(&path, &example(2), &[text("a")]).unwrap();
        assert!(refused(&path, to).1.contains("1 file instead of 2"));
    }

    #[test]
    fn another_version_is_refused_before_anything_is_extracted() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("a.tar.zst"), folder.path());
        for (version, memcheck) in [(VERSION + 1, env!("CARGO_PKG_VERSION")), (VERSION, "99.0.0")] {
            let mut other = example(1);
            (other.head.version, other.head.memcheck) = (version, memcheck.to_owned());
            write(&path, &other, &[text("extracted")]).unwrap();
            let (code, message) = refused(&path, to);
            assert_eq!(code, exit::USAGE);
            assert!(message.contains("another version"), "{message}");
            assert!(!to.join("extracted").exists());
        }
    }
}
