//! Where the files of the tool lie: in the workspace's target directory, or in the
//! current folder where there is no workspace.

use std::path::{Path, PathBuf};

use super::{Workspace, WorkspaceError};
use crate::cli::CargoFlags;

/// The folders of a workspace, for those who need no more of it.
#[derive(Debug)]
pub(crate) struct Places {
    root: PathBuf,
    own: PathBuf,
}

impl Places {
    /// Asks cargo; where there is none, or nothing that it knows, the current
    /// folder stands for that of a workspace.
    pub(crate) fn find(flags: &CargoFlags) -> Result<Self, WorkspaceError> {
        let here = Self::here(flags);
        let is_known = || here.root.ancestors().any(|folder| folder.join("Cargo.toml").is_file());
        match Workspace::outline(flags) {
            Ok(workspace) => {
                Ok(Self { root: workspace.root().to_owned(), own: workspace.own_directory() })
            }
            // A cargo without a toolchain says no more than that it failed.
            Err(WorkspaceError::Metadata(_)) if flags.manifest_path.is_none() && !is_known() => {
                Ok(here)
            }
            Err(WorkspaceError::NoCargo(_)) => Ok(here),
            Err(error) => Err(error),
        }
    }

    /// The current folder, as if it were that of a workspace.
    pub(crate) fn here(flags: &CargoFlags) -> Self {
        let root = std::env::current_dir().unwrap_or_default();
        let target = flags.target_dir.clone().unwrap_or_else(|| "target".into());
        Self { own: root.join(target).join("memcheck"), root }
    }

    /// Where the tool may keep its files, as far as that is known without cargo.
    pub(super) fn candidates(flags: &CargoFlags) -> Vec<PathBuf> {
        let here = std::env::current_dir().unwrap_or_default();
        let named = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"].into_iter();
        let named = named.filter_map(std::env::var_os).map(PathBuf::from);
        let from = flags.manifest_path.as_ref().and_then(|path| path.parent());
        let from = from.map_or_else(|| here.clone(), |folder| here.join(folder));
        let above = from.ancestors().map(|folder| folder.join("target"));
        let targets = flags.target_dir.iter().cloned().chain(named).chain(above);
        targets.map(|target| here.join(target).join("memcheck")).collect()
    }

    /// The folder of the workspace's Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where `--ci` leaves pending snapshots.
    pub(crate) fn pending_directory(&self) -> PathBuf {
        self.own.join("pending")
    }

    /// Where the results of a run are kept unless somebody says otherwise.
    pub(crate) fn results_directory(&self) -> PathBuf {
        self.own.join("results")
    }
}

/// Where a run of an archive leaves pending snapshots, below the folder of its
/// results. Tests are started elsewhere, so it is absolute.
pub(crate) fn pending_of_results(results: &Path) -> PathBuf {
    std::path::absolute(results).unwrap_or_else(|_| results.to_owned()).join("pending")
}
