//! Extracts an archive into a folder of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::elf::ElfTarget;
use super::manifest::{Manifest, Tables, WORKSPACE};
use super::{ArchiveError, file};
use crate::system::temporary::TemporaryFolder;
use cargo_metadata::camino::{Utf8Path, Utf8PathBuf};

/// The folder was empty before.
pub(super) fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // An error is ignored here, because the next run refuses a folder that is not empty.
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
            _ => fs::remove_file(entry.path()),
        };
    }
}

/// The manifest with the paths of this machine, and the root of the workspace on the machine that
/// built the archive.
pub(super) fn extract(
    archive: &Path,
    line_tables: Option<&Path>,
    folder: &Path,
    sources: &Path,
) -> Result<(Manifest, PathBuf), ArchiveError> {
    let here = ElfTarget::here().map_err(|error| ArchiveError::Io(archive.to_owned(), error))?;
    let mut manifest: Manifest = file::read(archive, folder, |manifest: &Manifest| {
        if manifest.target == here {
            return Ok(());
        }
        Err(ArchiveError::Target(archive.to_owned(), manifest.target.clone(), here))
    })?;
    if let Some(tables) = line_tables {
        file::read(tables, folder, |page: &Tables| {
            if page.head.id == manifest.head.id {
                return Ok(());
            }
            Err(ArchiveError::OtherArchive(tables.to_owned()))
        })?;
    }
    let root = manifest.metadata.workspace_root.clone();
    relocate(&mut manifest, &root, folder, sources)?;
    Ok((manifest, root.into_std_path_buf()))
}

/// `named` must be empty; without it, a temporary folder is removed after the run.
pub(super) fn folder(
    named: Option<&Path>,
) -> Result<(PathBuf, Option<TemporaryFolder>), ArchiveError> {
    let Some(named) = named else {
        let place = std::env::temp_dir();
        let made = TemporaryFolder::new(&place, "memcheck-archive-");
        let temporary = made.map_err(|error| ArchiveError::Io(place, error))?;
        return Ok((absolute(temporary.path())?, Some(temporary)));
    };
    let io = |error| ArchiveError::Io(named.to_owned(), error);
    fs::create_dir_all(named).map_err(io)?;
    if fs::read_dir(named).map_err(io)?.next().is_some() {
        return Err(ArchiveError::NotEmpty(named.to_owned()));
    }
    Ok((absolute(named)?, None))
}

/// Baselines and reports are compared by their paths, so symbolic links are resolved.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, ArchiveError> {
    path.canonicalize().map_err(|error| ArchiveError::Io(path.to_owned(), error))
}

/// The root becomes the folder of the baselines; the packages are below the folder of the sources.
fn relocate(
    manifest: &mut Manifest,
    root: &Utf8Path,
    folder: &Path,
    sources: &Path,
) -> Result<(), ArchiveError> {
    let utf8 = |path: PathBuf| {
        Utf8PathBuf::from_path_buf(path).map_err(|path| {
            let why = std::io::Error::other("a path that is not UTF-8 cannot be used here");
            ArchiveError::Io(path, why)
        })
    };
    let sources = utf8(sources.to_owned())?;
    let metadata = &mut manifest.metadata;
    for package in &mut metadata.packages {
        if let Ok(rest) = package.manifest_path.strip_prefix(root) {
            package.manifest_path = sources.join(rest);
        }
        // Tests are started in the folder of their package, so it must exist.
        let place = package.manifest_path.parent().map(Utf8Path::as_std_path);
        if let Some(place) = place.filter(|_| manifest.packages.contains(&package.id.repr)) {
            if place.starts_with(folder) {
                fs::create_dir_all(place)
                    .map_err(|error| ArchiveError::Io(place.to_owned(), error))?;
            } else if !place.is_dir() {
                return Err(ArchiveError::NoSources(place.to_owned()));
            }
        }
    }
    metadata.workspace_root = utf8(folder.join(WORKSPACE))?;
    Ok(())
}
