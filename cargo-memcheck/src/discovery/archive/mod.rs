//! Archives: test executables that run on a machine without cargo and sources. A `.tar.zst` file
//! has the manifest, `tests` (the lists of tests), `workspace` (configuration, baselines at their
//! paths), and a folder of executables and libraries for each kind of device. Line tables are the
//! largest part, so they can go to a second archive.
//!
//! An archive can come from someone else. It is validated as a whole before anything is written,
//! and only its executables are code.

mod check;
mod error;
mod extract;
mod format;
mod interruptible;
mod manifest;
mod metadata;
mod names;
#[cfg(feature = "archives")]
mod pack;
#[cfg_attr(not(feature = "archives"), path = "left_out.rs")]
mod read;
#[cfg(feature = "archives")]
mod strip;
mod unpack;
#[cfg(feature = "archives")]
mod write;

use std::path::PathBuf;

pub(crate) use error::ArchiveError;
#[cfg(feature = "archives")]
pub(crate) use pack::{Leaf, LineTables, Packed, PackedFrom, pack};
pub(crate) use unpack::Unpacked;
#[cfg(any(test, fuzzing))]
pub(crate) use unpack::inspect;

/// The place and the files to extract. All others are read up to the last one of these, and not
/// written.
struct Destination {
    folder: PathBuf,
    wanted: fn(&str) -> bool,
}
