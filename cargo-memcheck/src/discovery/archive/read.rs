//! Reads an archive, and refuses it before anything is written unless its header and its page are
//! valid. The entries that follow must be exactly the files that the page declares, so that the tar
//! stream cannot add, rename, resize or link anything. Memory is bounded by the limits of `format`
//! and by zstd's window.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use memcheck_core::size::Size;
use nix::sys::statvfs::statvfs;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::format::{
    ArchiveHeader, ArchivePage, HEADER_LIMIT, MAGIC, PAGE, PAGE_LIMIT, PackedFile, VERSION,
    WINDOWS, largest_total,
};
use super::interruptible::Interruptible;
use super::names;
use super::{ArchiveError, Destination};
use crate::system::process::Interrupt;

/// The steps in which files are copied, with a look at the signals before each.
const STEP: usize = 256 << 10;
/// tar ends with two blocks of zeros, and its reader takes the first one.
const END_OF_TAR: u64 = 512;

type Decoder<'a> = zstd::Decoder<'static, BufReader<Interruptible<'a, File>>>;
type Entry<'a, 'b> = tar::Entry<'b, Decoder<'a>>;

/// Calls `prepare` when header and page are valid, and extracts the files to its destination.
pub(super) fn read<P: ArchivePage>(
    path: &Path,
    interrupt: &Interrupt,
    prepare: impl FnOnce(&ArchiveHeader, &P) -> Result<Destination, ArchiveError>,
) -> Result<P, ArchiveError> {
    Reader { path, interrupt }.read(prepare)
}

struct Reader<'a> {
    path: &'a Path,
    interrupt: &'a Interrupt,
}

impl Reader<'_> {
    fn unreadable(&self, error: io::Error) -> ArchiveError {
        ArchiveError::Unreadable(self.path.to_owned(), error)
    }

    /// For an error of zstd, of tar, or of the file below them.
    fn torn(&self, error: io::Error) -> ArchiveError {
        match self.interrupt.is_set() {
            true => ArchiveError::Interrupted,
            false => ArchiveError::damaged(self.path, &error.to_string()),
        }
    }

    fn refused(&self, why: impl AsRef<str>) -> ArchiveError {
        ArchiveError::refused(self.path, why.as_ref())
    }

    fn read<P: ArchivePage>(
        &self,
        prepare: impl FnOnce(&ArchiveHeader, &P) -> Result<Destination, ArchiveError>,
    ) -> Result<P, ArchiveError> {
        let other = || ArchiveError::NotAnArchive(self.path.to_owned(), P::KIND);
        // Opening a pipe could wait for ever, and the size of a device is unknown.
        let metadata = fs::metadata(self.path).map_err(|error| self.unreadable(error))?;
        if !metadata.is_file() {
            return Err(other());
        }
        let file = File::open(self.path).map_err(|error| self.unreadable(error))?;
        let mut file = BufReader::new(Interruptible::new(file, self.interrupt));
        if !file.fill_buf().map_err(|error| self.unreadable(error))?.starts_with(&MAGIC) {
            return Err(other());
        }
        let mut zstd =
            // One frame, so that `end` sees the bytes behind it.
            zstd::Decoder::with_buffer(file).map_err(|error| self.torn(error))?.single_frame();
        // zstd refuses more than 27 by default.
        zstd.window_log_max(*WINDOWS.end()).map_err(|error| self.torn(error))?;
        let mut tar = tar::Archive::new(zstd);
        // Raw entries, because otherwise the reader would hold extensions of any size in memory.
        let mut entries = tar.entries().map_err(|error| self.torn(error))?.raw(true);

        let first = entries.next().ok_or_else(other)?.map_err(|error| self.torn(error))?;
        if !first.header().entry_type().is_file() || *first.path_bytes() != *P::NAME.as_bytes() {
            return Err(other());
        }
        let header = self.header(first)?;
        let page: P = self.page(&mut entries, header.page)?;
        page.check().map_err(|why| self.refused(why))?;
        self.check_total(page.files(), metadata.len())?;

        let Destination { folder, wanted } = prepare(&header, &page)?;
        let is_wanted = |file: &&PackedFile| wanted(&file.name);
        check_space(&folder, page.files().iter().filter(is_wanted))?;
        let needed = page.files().iter().rposition(|file| is_wanted(&file)).map_or(0, |at| at + 1);
        for file in &page.files()[..needed] {
            let entry = self.file(&mut entries, file)?;
            let target = wanted(&file.name).then(|| folder.join(&file.name));
            self.extract(entry, file, target.as_deref())?;
        }
        if needed == page.files().len() {
            if let Some(entry) = entries.next() {
                entry.map_err(|error| self.torn(error))?;
                return Err(self.refused("it has more files than its list"));
            }
            self.end(tar.into_inner())?;
        }
        Ok(page)
    }

    /// The version is parsed first and alone, because another version can have other fields.
    fn header(&self, first: Entry<'_, '_>) -> Result<ArchiveHeader, ArchiveError> {
        let size = first.size();
        let mut json = Vec::new();
        first.take(HEADER_LIMIT).read_to_end(&mut json).map_err(|error| self.torn(error))?;
        let Some(ArchiveVersion { version, memcheck }) = ArchiveVersion::read(&json) else {
            return Err(self.refused("its header has no version"));
        };
        let ours = env!("CARGO_PKG_VERSION");
        if version != VERSION || memcheck != ours {
            // It is printed, and can be any text.
            let theirs = match names::check_text(&memcheck) {
                Ok(()) => memcheck,
                Err(_) => "an unknown version".to_owned(),
            };
            let both = format!("{theirs} (format {version}), this is {ours} (format {VERSION})");
            return Err(ArchiveError::Version(self.path.to_owned(), both));
        }
        if size > HEADER_LIMIT {
            return Err(self.refused(format!("its header has {size} bytes")));
        }
        serde_json::from_slice(&json).map_err(|error| self.torn(error.into()))
    }

    fn page<'a: 'b, 'b, P: ArchivePage>(
        &self,
        entries: &mut tar::Entries<'b, Decoder<'a>>,
        bytes: u64,
    ) -> Result<P, ArchiveError> {
        if bytes > PAGE_LIMIT {
            return Err(self.refused(format!("its list of files has {bytes} bytes")));
        }
        let declared = PackedFile { name: PAGE.to_owned(), bytes, executable: false };
        let entry = self.file(entries, &declared)?;
        let mut json = Vec::new();
        entry.take(bytes).read_to_end(&mut json).map_err(|error| self.torn(error))?;
        serde_json::from_slice(&json).map_err(|error| self.torn(error.into()))
    }

    fn check_total(&self, files: &[PackedFile], compressed: u64) -> Result<(), ArchiveError> {
        let total = files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes));
        match total {
            Some(total) if total <= largest_total(compressed) => Ok(()),
            Some(total) => {
                Err(self.refused(format!("{} would become {}", Size(compressed), Size(total))))
            }
            None => Err(self.refused("the sum of its files is not a number of bytes")),
        }
    }

    /// The next entry, which must be the declared one.
    fn file<'a: 'b, 'b>(
        &self,
        entries: &mut tar::Entries<'b, Decoder<'a>>,
        declared: &PackedFile,
    ) -> Result<Entry<'a, 'b>, ArchiveError> {
        let PackedFile { name, bytes, .. } = declared;
        let mut next = || match entries.next() {
            Some(entry) => entry.map_err(|error| self.torn(error)),
            None => Err(self.torn(io::Error::other(format!("{name} is missing")))),
        };
        let mut entry = next()?;
        let wrong = |why: String| self.refused(format!("{name}: {why}"));
        // tar stores a long name, with a zero byte, in an entry before the file, whose own name is
        // then cut off.
        let is_long = entry.header().entry_type().is_gnu_longname();
        if is_long {
            let expected = name.len() as u64 + 1;
            let mut long = Vec::new();
            entry.by_ref().take(expected).read_to_end(&mut long).map_err(|e| self.torn(e))?;
            if entry.size() != expected || long.split_last() != Some((&0, name.as_bytes())) {
                return Err(wrong("the archive has another name for it".to_owned()));
            }
            entry = next()?;
        }
        let header = entry.header();
        let kind = header.entry_type();
        if !kind.is_file() {
            return Err(wrong(format!("it is not a file, but an entry of type {kind:?}")));
        }
        let own = entry.path_bytes();
        let is_same = match is_long {
            true => name.as_bytes().starts_with(&own),
            false => name.as_bytes() == &*own,
        };
        if !is_same {
            let own = own.escape_ascii().to_string();
            return Err(wrong(format!("the archive has `{own:.100}` in its place")));
        }
        if entry.size() != *bytes {
            let size = entry.size();
            return Err(wrong(format!("it has {size} bytes instead of the {bytes} in the list")));
        }
        let mode = header.mode().map_err(|error| self.torn(error))?;
        if mode != declared.mode() {
            return Err(wrong(format!("its mode is {mode:o} instead of {:o}", declared.mode())));
        }
        Ok(entry)
    }

    /// The folder was empty, and only this function creates files in it, so that no folder can be a
    /// symbolic link.
    fn extract(
        &self,
        mut entry: Entry<'_, '_>,
        file: &PackedFile,
        target: Option<&Path>,
    ) -> Result<(), ArchiveError> {
        let mut output: Box<dyn Write> = match target {
            None => Box::new(io::sink()),
            Some(target) => {
                let io = |error| ArchiveError::Io(target.to_owned(), error);
                fs::create_dir_all(target.parent().expect("it is in the folder")).map_err(io)?;
                let mut options = OpenOptions::new();
                Box::new(
                    options
                        .write(true)
                        .create_new(true)
                        .mode(file.mode())
                        .open(target)
                        .map_err(io)?,
                )
            }
        };
        let mut buffer = vec![0; STEP];
        let mut left = file.bytes;
        while left > 0 {
            if self.interrupt.is_set() {
                return Err(ArchiveError::Interrupted);
            }
            let read = match entry.read(&mut buffer).map_err(|error| self.torn(error))? {
                0 => return Err(self.torn(io::ErrorKind::UnexpectedEof.into())),
                read => read,
            };
            left = left.saturating_sub(read as u64);
            output
                .write_all(&buffer[..read])
                .map_err(|error| ArchiveError::Io(target.unwrap_or(self.path).to_owned(), error))?;
        }
        Ok(())
    }

    /// Nothing may follow the last file. zstd verifies its checksum at the end of the frame.
    fn end(&self, mut zstd: Decoder<'_>) -> Result<(), ArchiveError> {
        let mut rest = Vec::new();
        zstd.by_ref()
            .take(END_OF_TAR + 1)
            .read_to_end(&mut rest)
            .map_err(|error| self.torn(error))?;
        let mut file = zstd.finish();
        let after = !file.fill_buf().map_err(|error| self.unreadable(error))?.is_empty();
        if after || rest.len() as u64 > END_OF_TAR || rest.iter().any(|byte| *byte != 0) {
            return Err(self.refused("there are bytes after its last file"));
        }
        // tar takes the end of a stream for the end of an archive.
        if (rest.len() as u64) < END_OF_TAR {
            return Err(self.torn(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }
}

fn check_space<'a>(
    folder: &Path,
    files: impl Iterator<Item = &'a PackedFile>,
) -> Result<(), ArchiveError> {
    // `check_total` has added all of them without an overflow.
    let needed: u64 = files.map(|file| file.bytes).sum();
    let space = statvfs(folder).map_err(|e| ArchiveError::Io(folder.to_owned(), e.into()))?;
    let free = space.blocks_available().saturating_mul(space.fragment_size());
    match needed > free {
        true => Err(ArchiveError::NoSpace { folder: folder.to_owned(), needed, free }),
        false => Ok(()),
    }
}

/// The two fields that every version has. Parsing ends with the second one, because the rest can be
/// cut off.
struct ArchiveVersion {
    version: u32,
    memcheck: String,
}

impl ArchiveVersion {
    fn read(json: &[u8]) -> Option<Self> {
        let mut found = Fields::default();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        // Also an error if the fields were found and the rest is cut off.
        let _ = serde::Deserializer::deserialize_map(&mut deserializer, &mut found);
        Some(Self { version: found.version?, memcheck: found.memcheck? })
    }
}

#[derive(Default)]
struct Fields {
    version: Option<u32>,
    memcheck: Option<String>,
}

impl<'de> Visitor<'de> for &mut Fields {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the header of an archive")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while self.version.is_none() || self.memcheck.is_none() {
            match map.next_key::<String>()?.as_deref() {
                Some("version") => self.version = Some(map.next_value()?),
                Some("memcheck") => self.memcheck = Some(map.next_value()?),
                Some(_) => drop(map.next_value::<IgnoredAny>()?),
                None => break,
            }
        }
        Ok(())
    }
}
