//! The locations of the tool's files: in the workspace's target directory, or in the current folder
//! if there is no workspace.

use std::path::{Path, PathBuf};

use super::{Workspace, WorkspaceError};
use crate::invocation::values::CargoOptions;

#[derive(Debug)]
pub(crate) struct Places {
    root: PathBuf,
    own: PathBuf,
}

impl Places {
    /// Uses the current folder as the workspace if cargo is missing, or if no manifest exists.
    pub(crate) fn find(flags: &CargoOptions) -> Result<Self, WorkspaceError> {
        let here = Self::here(flags);
        let is_known = || here.root.ancestors().any(|folder| folder.join("Cargo.toml").is_file());
        match Workspace::outline(flags) {
            Ok(workspace) => {
                Ok(Self { root: workspace.root().to_owned(), own: workspace.own_directory() })
            }
            // A cargo without a toolchain fails with an error that does not state this reason.
            Err(WorkspaceError::Metadata(_)) if flags.manifest_path.is_none() && !is_known() => {
                Ok(here)
            }
            Err(WorkspaceError::NoCargo(_)) => Ok(here),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn here(flags: &CargoOptions) -> Self {
        let root = std::env::current_dir().unwrap_or_default();
        let target = flags.target_dir.clone().unwrap_or_else(|| "target".into());
        Self { own: root.join(target).join("memcheck"), root }
    }

    /// For a workspace that cargo may be unable to describe: the first folder of the tool that
    /// exists.
    pub(crate) fn guess(flags: &CargoOptions) -> Self {
        let here = Self::here(flags);
        let own = Self::candidates(flags).into_iter().find(|own| own.is_dir());
        Self { own: own.unwrap_or(here.own), root: here.root }
    }

    /// As far as they can be determined without cargo.
    pub(super) fn candidates(flags: &CargoOptions) -> Vec<PathBuf> {
        let here = std::env::current_dir().unwrap_or_default();
        let named = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"].into_iter();
        let named = named.filter_map(std::env::var_os).map(PathBuf::from);
        let from = flags.manifest_path.as_ref().and_then(|path| path.parent());
        let from = from.map_or_else(|| here.clone(), |folder| here.join(folder));
        let above = from.ancestors().map(|folder| folder.join("target"));
        // In the order in which cargo prefers them.
        let targets = flags.target_dir.iter().cloned().chain(named).chain(above);
        targets.map(|target| here.join(target).join("memcheck")).collect()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn own_directory(&self) -> &Path {
        &self.own
    }

    pub(crate) fn pending_directory(&self) -> PathBuf {
        self.own.join("pending")
    }

    pub(crate) fn results_directory(&self) -> PathBuf {
        self.own.join("results")
    }
}

/// Absolute, because tests start in other folders.
pub(crate) fn pending_of_results(results: &Path) -> PathBuf {
    std::path::absolute(results).unwrap_or_else(|_| results.to_owned()).join("pending")
}
