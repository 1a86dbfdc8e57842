//! Archives: test executables packed with everything that is required to run them on a machine that has neither cargo
//! nor the sources.
//!
//! An archive is a `.tar.zst` file. Its first entry is the manifest, which contains cargo's metadata of the workspace
//! and lists the builds for each kind of device. A `workspace` folder follows, with the configuration as
//! `.config/memcheck.toml` and the baselines at their paths in the sources. Then a folder for each kind of device
//! contains its executables and the libraries that were built with them. Line tables are by far the largest part, so
//! they can be written to a separate archive.

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
