//! Stands for the reader of archives in a build without the feature `archives`: it refuses each one.

use std::path::Path;

use super::format::{ArchiveHeader, ArchivePage};
use super::{ArchiveError, Destination};
use crate::system::process::Interrupt;

pub(super) fn read<P: ArchivePage>(
    _path: &Path,
    _interrupt: &Interrupt,
    _prepare: impl FnOnce(&ArchiveHeader, &P) -> Result<Destination, ArchiveError>,
) -> Result<P, ArchiveError> {
    Err(ArchiveError::LeftOut)
}
