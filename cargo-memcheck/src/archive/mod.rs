//! Archives: test executables with all that running them takes, for a machine
//! that has neither cargo nor the sources.
//!
//! A `.tar.zst`. Its first entry, the manifest, says what there is: what cargo
//! knows of the workspace, and what was built for which kind of device. Behind
//! it come a `workspace` folder with the configuration and the baselines, each
//! where it lies in the sources, and a folder for each kind of device with its
//! executables and the libraries that were built with them. Line tables, the
//! largest part by far, may lie in an archive of their own.

mod elf;
mod error;
mod extract;
mod file;
mod manifest;
mod pack;
mod strip;
mod unpack;

pub(crate) use elf::Target;
pub(crate) use error::ArchiveError;
pub(crate) use pack::{Leaf, LineTables, Origin, Packed, pack};
pub(crate) use unpack::Unpacked;
