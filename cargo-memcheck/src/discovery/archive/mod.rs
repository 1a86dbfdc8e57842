//! Archives: test executables that run on a machine without cargo and sources. A `.tar.zst` file
//! has the manifest, `workspace` (configuration, baselines at their paths), and a folder of
//! executables and libraries for each kind of device. Line tables are the largest part, so they can
//! go to a second archive.

mod elf;
mod error;
mod extract;
mod file;
mod manifest;
mod pack;
mod strip;
mod unpack;

pub(crate) use elf::ElfTarget;
pub(crate) use error::ArchiveError;
pub(crate) use pack::{Leaf, LineTables, Origin, Packed, pack};
pub(crate) use unpack::Unpacked;
