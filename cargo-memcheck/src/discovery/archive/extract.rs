//! Extracts an archive into a folder of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;
use cargo_metadata::camino::{Utf8Path, Utf8PathBuf};
use memcheck_core::wire::protocol;

use super::manifest::{self, Manifest, TESTS, Tables, WORKSPACE};
use super::{ArchiveError, Destination, metadata, read};
use crate::invocation::values::UnpackOptions;
use crate::system::elf::ElfTarget;
use crate::system::process::Interrupt;
use crate::system::temporary::TemporaryFolder;

/// The folder that an archive is extracted to. Dropping it removes a temporary folder, and the
/// contents of a folder that the user named, until [`Folder::keep`] is called.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Removed on drop. `None` if the user named a folder.
    temporary: Option<TemporaryFolder>,
    /// To be removed on drop: a folder that was created for the archive.
    created: Option<PathBuf>,
    /// The folder existed, and its contents are to be removed on drop.
    emptied: bool,
}

impl Folder {
    /// `named` must be empty; without it, the folder is temporary.
    pub(super) fn create(named: Option<&Path>) -> Result<Self, ArchiveError> {
        let Some(named) = named else {
            let place = std::env::temp_dir();
            let made = TemporaryFolder::new(&place, "memcheck-archive-");
            let temporary = made.map_err(|error| ArchiveError::Io(place, error))?;
            let path = absolute(temporary.path())?;
            return Ok(Self { path, temporary: Some(temporary), created: None, emptied: false });
        };
        let io = |error| ArchiveError::Io(named.to_owned(), error);
        // The last ancestor of a relative path is empty.
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let created = named.ancestors().take_while(missing).last().map(Path::to_owned);
        fs::create_dir_all(named).map_err(io)?;
        if fs::read_dir(named).map_err(io)?.next().is_some() {
            return Err(ArchiveError::NotEmpty(named.to_owned()));
        }
        let created = created.map(|created| absolute(&created)).transpose()?;
        Ok(Self { path: absolute(named)?, temporary: None, emptied: created.is_none(), created })
    }

    /// The folder that the user named stays from now on.
    pub(super) fn keep(&mut self) {
        (self.created, self.emptied) = (None, false);
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error is ignored here, because the next run refuses a folder that is not empty.
        if let Some(created) = &self.created {
            let _ = fs::remove_dir_all(created);
        }
        if self.emptied {
            for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
                let _ = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                    _ => fs::remove_file(entry.path()),
                };
            }
        }
    }
}

/// An extracted archive, with the paths of this machine.
#[derive(Debug)]
pub(super) struct Extracted {
    pub(super) manifest: Manifest,
    pub(super) metadata: Metadata,
    pub(super) folder: Folder,
    pub(super) sources: PathBuf,
    /// The root of the workspace on the machine that built the archive.
    pub(super) root: PathBuf,
}

#[cfg(any(test, fuzzing))]
impl Extracted {
    /// An archive without files. `None` if its page is refused.
    pub(super) fn of_page(json: &[u8]) -> Option<Self> {
        let manifest: Manifest = serde_json::from_slice(json).ok()?;
        super::format::ArchivePage::check(&manifest).ok()?;
        let mut metadata = metadata::parse(&manifest.metadata).ok()?;
        let root = metadata.workspace_root.clone();
        let folder = Folder::create(None).ok()?;
        let sources = folder.path.join(WORKSPACE);
        relocate(&mut metadata, &manifest.packages, &root, &folder.path, &sources).ok()?;
        Some(Self { manifest, metadata, folder, sources, root: root.into_std_path_buf() })
    }
}

/// Creates the folder only if the page of the archive is valid and was made for this machine.
pub(super) fn extract(
    archive: &Path,
    flags: &UnpackOptions,
    interrupt: &Interrupt,
) -> Result<Extracted, ArchiveError> {
    let here = ElfTarget::here().map_err(|error| ArchiveError::Io(archive.to_owned(), error))?;
    let wanted = if flags.no_run { is_table } else { is_any };
    let (mut folder, mut id) = (None, String::new());
    let manifest: Manifest = read::read(archive, interrupt, |header, manifest: &Manifest| {
        // Tests are not started with --no-run, so they may be for another kind of machine.
        if manifest.target != here && !flags.no_run {
            return Err(ArchiveError::Target(archive.to_owned(), manifest.target.clone(), here));
        }
        id.clone_from(&header.id);
        let made = folder.insert(Folder::create(flags.extract_to.as_deref())?);
        Ok(Destination { folder: made.path.clone(), wanted })
    })?;
    let folder = folder.expect("it was made before the files were read");
    if let Some(tables) = &flags.line_tables {
        read::read(tables, interrupt, |header, page: &Tables| {
            if header.id != id {
                return Err(ArchiveError::OtherArchive(tables.to_owned()));
            }
            belong_to(&manifest, page).map_err(|why| ArchiveError::refused(tables, &why))?;
            Ok(Destination { folder: folder.path.clone(), wanted })
        })?;
    }
    let sources = match &flags.workspace_remap {
        Some(path) => absolute(path)?,
        None => folder.path.join(WORKSPACE),
    };
    let refused = |why: String| ArchiveError::refused(archive, &why);
    let mut metadata = metadata::parse(&manifest.metadata).map_err(refused)?;
    let root = metadata.workspace_root.clone();
    relocate(&mut metadata, &manifest.packages, &root, &folder.path, &sources)?;
    Ok(Extracted { manifest, metadata, folder, sources, root: root.into_std_path_buf() })
}

fn is_any(_: &str) -> bool {
    true
}

/// The text files that `list --no-run` reads.
fn is_table(name: &str) -> bool {
    name.strip_prefix(TESTS).is_some_and(|rest| rest.starts_with('/'))
        || name == manifest::configuration()
}

fn belong_to(manifest: &Manifest, tables: &Tables) -> Result<(), String> {
    let executables = manifest.builds.iter().flat_map(|build| &build.executables);
    let known: BTreeSet<PathBuf> =
        executables.map(|executable| protocol::line_tables(Path::new(&executable.file))).collect();
    match tables.files.iter().find(|file| !known.contains(Path::new(&file.name))) {
        Some(file) => Err(format!("{} is not for an executable of the archive", file.name)),
        None => Ok(()),
    }
}

/// Baselines and reports are compared by their paths, so symbolic links are resolved.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, ArchiveError> {
    path.canonicalize().map_err(|error| ArchiveError::Io(path.to_owned(), error))
}

/// The root becomes the folder of the baselines; the packages are below the folder of the sources.
fn relocate(
    metadata: &mut Metadata,
    packages: &[String],
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
    let packages: BTreeSet<&String> = packages.iter().collect();
    for package in &mut metadata.packages {
        if let Ok(rest) = package.manifest_path.strip_prefix(root) {
            package.manifest_path = sources.join(rest);
        }
        // Tests are started in the folder of their package, so it must exist. The page was checked,
        // so it is below the sources.
        let place = package.manifest_path.parent().map(Utf8Path::as_std_path);
        if let Some(place) = place.filter(|_| packages.contains(&package.id.repr)) {
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
