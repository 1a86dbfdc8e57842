//! The file of an archive: tar in zstd, its first entry a page of JSON that
//! says which files follow.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ArchiveError;
use crate::process::Interrupt;

/// Version of what is in an archive.
pub(super) const VERSION: u32 = 1;
/// zstd's own default: higher ones take much longer for little less.
const LEVEL: i32 = 3;
/// How far back repetitions are looked for, as powers of two. Most of a test
/// executable is in the next one too, so it is farther than the largest is long. The
/// least, 128 MiB, is what zstd unpacks unasked; more is asked for by `--long`. It is
/// memory that packing and unpacking take.
const WINDOWS: RangeInclusive<u32> = 27..=30;
/// What every file of zstd begins with.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What the first page of every archive begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// [`VERSION`].
    pub(super) version: u32,
    /// Version of the command.
    pub(super) memcheck: String,
    /// A hash of the executables.
    pub(super) id: String,
    /// How many files follow.
    pub(super) files: usize,
}

impl Head {
    /// The head of an archive that is written here.
    pub(super) fn new(id: String, files: usize) -> Self {
        Self { version: VERSION, memcheck: env!("CARGO_PKG_VERSION").to_owned(), id, files }
    }
}

/// The first page of one kind of archive.
pub(super) trait Page: Serialize + DeserializeOwned {
    /// Its name in the archive.
    const NAME: &'static str;
    /// What a file without it is not.
    const KIND: &'static str;
    /// Its head.
    fn head(&self) -> &Head;
}

/// A file for an archive: its name there, and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: PathBuf,
    pub(super) source: Source,
}

/// What is in a file for an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    Text(String),
}

/// Writes an archive whole: beside its place, then renamed. Answers with its size.
pub(super) fn write<P: Page>(
    path: &Path,
    page: &P,
    entries: &[Entry],
) -> Result<u64, ArchiveError> {
    let io = |error| ArchiveError::Io(path.to_owned(), error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(io)?;
    let unfinished = tempfile::Builder::new()
        .prefix(".memcheck-archive-")
        // Not its owner's alone: an archive is like any other file.
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(io)?;
    let mut zstd = zstd::Encoder::new(BufWriter::new(unfinished.as_file()), LEVEL).map_err(io)?;
    zstd.include_checksum(true).map_err(io)?;
    zstd.long_distance_matching(true).map_err(io)?;
    zstd.window_log(window(entries)).map_err(io)?;
    let mut tar = tar::Builder::new(zstd);
    // The same executables make the same archive.
    tar.mode(tar::HeaderMode::Deterministic);
    // Holes are zeros, which zstd makes nothing of; files are files.
    tar.sparse(false);
    let json = serde_json::to_vec(page).map_err(|error| io(error.into()))?;
    add_bytes(&mut tar, Path::new(P::NAME), &json).map_err(io)?;
    for Entry { name, source } in entries {
        if Interrupt::has_come() {
            return Err(io(io::ErrorKind::Interrupted.into()));
        }
        match source {
            Source::Text(text) => add_bytes(&mut tar, name, text.as_bytes()).map_err(io)?,
            Source::File(file) => tar
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

/// The window in which each file of the entries is found in the one behind it.
fn window(entries: &[Entry]) -> u32 {
    let length = |entry: &Entry| match &entry.source {
        Source::Text(text) => text.len() as u64,
        Source::File(file) => fs::metadata(file).map_or(0, |metadata| metadata.len()),
    };
    let largest = entries.iter().map(length).max().unwrap_or(0);
    // Files that are nearly the same are not equally long.
    let far = largest.saturating_add(largest / 4).max(1);
    far.next_power_of_two().ilog2().clamp(*WINDOWS.start(), *WINDOWS.end())
}

fn add_bytes<W: io::Write>(tar: &mut tar::Builder<W>, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes)
}

/// Reads the first page of an archive, and extracts the rest to `folder` unless
/// `check` refuses it.
pub(super) fn read<P: Page>(
    path: &Path,
    folder: &Path,
    check: impl FnOnce(&P) -> Result<(), ArchiveError>,
) -> Result<P, ArchiveError> {
    let unreadable = |error| ArchiveError::Unreadable(path.to_owned(), error);
    let other = || ArchiveError::NotOne(path.to_owned(), P::KIND);
    let torn = |error: io::Error| ArchiveError::Torn(path.to_owned(), error.to_string());
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
        let wrong =
            |why: &str| ArchiveError::Torn(path.to_owned(), format!("{}: {why}", name.display()));
        if !entry.header().entry_type().is_file() {
            return Err(wrong("it is not a file"));
        }
        // False for a name that leads out of the folder.
        let unpacked =
            entry.unpack_in(folder).map_err(|error| extracting(folder, &name, path, error))?;
        if !unpacked {
            return Err(wrong("it would lie elsewhere"));
        }
        files += 1;
    }
    // To the very end, where the checksum is.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(torn)?;
    let expected = page.head().files;
    if files != expected {
        let why = format!("{files} files instead of {expected}");
        return Err(ArchiveError::Torn(path.to_owned(), why));
    }
    Ok(page)
}

/// A full disk is one thing, a damaged archive another: what tar says of a file
/// that it writes wraps what happened.
fn extracting(folder: &Path, name: &Path, archive: &Path, error: io::Error) -> ArchiveError {
    let mut cause: &dyn std::error::Error = &error;
    let mut os = error.raw_os_error();
    while let Some(source) = cause.source() {
        cause = source;
        os = os.or_else(|| source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error));
    }
    match os {
        Some(code) => ArchiveError::Io(folder.join(name), io::Error::from_raw_os_error(code)),
        None => ArchiveError::Torn(archive.to_owned(), format!("{}: {cause}", name.display())),
    }
}

/// The first page. Its version first: another one may have other fields.
fn page<P: Page>(path: &Path, json: &[u8]) -> Result<P, ArchiveError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
        memcheck: String,
    }
    let torn = |error: serde_json::Error| ArchiveError::Torn(path.to_owned(), error.to_string());
    let Versioned { version, memcheck } = serde_json::from_slice(json).map_err(torn)?;
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
    use crate::error::Expected;
    use memcheck_core::exit;

    #[derive(Debug, Serialize, Deserialize)]
    struct Example {
        #[serde(flatten)]
        head: Head,
    }

    impl Page for Example {
        const NAME: &'static str = "example.json";
        const KIND: &'static str = "an example";
        fn head(&self) -> &Head {
            &self.head
        }
    }

    fn example(files: usize) -> Example {
        Example { head: Head::new("1".to_owned(), files) }
    }

    fn text(name: &str) -> Entry {
        Entry { name: name.into(), source: Source::Text("figures\n".repeat(1000)) }
    }

    fn refused(path: &Path, folder: &Path) -> (u8, String) {
        let error = read::<Example>(path, folder, |_| Ok(())).unwrap_err();
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn what_was_packed_is_extracted() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("new/a.tar.zst"), folder.path().join("to"));
        fs::create_dir(&to).unwrap();
        let program = Entry { name: "cpu/sh".into(), source: Source::File("/bin/sh".into()) };
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
    fn what_is_in_one_file_takes_no_room_in_the_next() {
        let folder = tempfile::tempdir().unwrap();
        // Bytes that nothing can be made of (an LCG's), 12 MiB of them: more than
        // the window of zstd's own choice at this level.
        let mut state = 1_u64;
        let mut noise = Vec::new();
        while noise.len() < 12 << 20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise.extend_from_slice(&state.to_be_bytes()[..4]);
        }
        let source = folder.path().join("noise");
        fs::write(&source, &noise).unwrap();
        let packed = |count: usize| {
            let entry =
                |n| Entry { name: format!("{n}").into(), source: Source::File(source.clone()) };
            let entries: Vec<Entry> = (0..count).map(entry).collect();
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
            // A hole: nothing is written.
            let path = folder.path().join(bytes.to_string());
            File::create(&path).unwrap().set_len(bytes).unwrap();
            window(&[text("a"), Entry { name: "b".into(), source: Source::File(path) }])
        };
        for (mib, log) in [(1, 27), (102, 27), (103, 28), (150, 28), (205, 29), (4000, 30)] {
            assert_eq!(of(mib << 20), log, "{mib} MiB");
        }
    }

    #[test]
    fn what_is_no_archive_or_half_of_one_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("a.tar.zst"), folder.path());
        assert_eq!(refused(&path, to).0, exit::USAGE);
        fs::write(&path, "no archive").unwrap();
        assert_eq!(refused(&path, to).0, exit::USAGE);
        write(&path, &example(1), &[text("a")]).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in [whole.len() / 2, whole.len() - 1, 20] {
            fs::write(&path, &whole[..cut]).unwrap();
            let (code, said) = refused(&path, to);
            assert_eq!(code, exit::NOT_MEASURED, "{cut}: {said}");
            assert!(said.contains("cut off or damaged"), "{said}");
        }
        for at in [whole.len() / 2, whole.len() - 2] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            fs::write(&path, damaged).unwrap();
            assert_eq!(refused(&path, to).0, exit::NOT_MEASURED, "{at}");
        }
        write(&path, &example(2), &[text("a")]).unwrap();
        assert!(refused(&path, to).1.contains("1 files instead of 2"));
    }

    #[test]
    fn another_version_is_refused_before_anything_is_extracted() {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("a.tar.zst"), folder.path());
        for (version, memcheck) in [(VERSION + 1, env!("CARGO_PKG_VERSION")), (VERSION, "99.0.0")] {
            let mut other = example(1);
            (other.head.version, other.head.memcheck) = (version, memcheck.to_owned());
            write(&path, &other, &[text("extracted")]).unwrap();
            let (code, said) = refused(&path, to);
            assert_eq!(code, exit::USAGE);
            assert!(said.contains("another version"), "{said}");
            assert!(!to.join("extracted").exists());
        }
    }
}
