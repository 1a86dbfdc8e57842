//! The file format of an archive: tar in zstd, with one frame and without extensions except for
//! long names.
//!
//! 1. The header, a short JSON document with the version. Every version begins with an entry of this name and these
//!    fields.
//! 2. The page, a JSON document that describes the archive and lists the files with their sizes.
//! 3. These files, in this order and with these sizes.
//!
//! A reader can therefore refuse an archive before it writes a byte, and before it has read more
//! than the header and the page.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A reader refuses every other version.
pub(super) const VERSION: u32 = 2;
pub(super) const PAGE: &str = "memcheck-contents.json";
/// Bytes.
pub(super) const HEADER_LIMIT: u64 = 4 << 10;
/// Bytes. JSON takes up to ten times as much memory when it is parsed.
pub(super) const PAGE_LIMIT: u64 = 8 << 20;
/// Powers of two. Consecutive executables have most content in common, so the window must be longer
/// than the largest file. zstd unpacks up to the minimum, 128 MiB, without `--long`. Packing and
/// unpacking allocate as much memory.
pub(super) const WINDOWS: RangeInclusive<u32> = 27..=30;
/// The first bytes of a zstd frame.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Executables shrink to a tenth or a thirtieth. A file that claims much more than that is made to
/// fill a disk.
const RATIO: u64 = 1000;
/// Bytes that every archive may have, whatever its own size is.
const ALWAYS_ALLOWED: u64 = 1 << 30;

/// Bytes that the files of an archive of `compressed` bytes may have.
pub(super) fn largest_total(compressed: u64) -> u64 {
    compressed.saturating_mul(RATIO).max(ALWAYS_ALLOWED)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArchiveHeader {
    pub(super) version: u32,
    pub(super) memcheck: String,
    /// Hash of the executables, the same in an archive and in the archive of its line tables.
    pub(super) id: String,
    /// Bytes of the page.
    pub(super) page: u64,
}

impl ArchiveHeader {
    pub(super) fn new(id: &str, page: u64) -> Self {
        let memcheck = env!("CARGO_PKG_VERSION").to_owned();
        Self { version: VERSION, memcheck, id: id.to_owned(), page }
    }
}

/// A file of the archive, as the page declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) executable: bool,
}

impl PackedFile {
    pub(super) fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

pub(super) trait ArchivePage: Serialize + DeserializeOwned {
    /// The name of the header in the archive.
    const NAME: &'static str;
    const KIND: &'static str;

    fn files(&self) -> &[PackedFile];

    /// Refuses everything that could lead out of the folder of the archive. The error is the
    /// reason.
    fn check(&self) -> Result<(), String>;
}
