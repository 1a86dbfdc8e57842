//! The source of the test executables: a build of the workspace, or an archive that replaces the
//! build.

use std::path::{Path, PathBuf};

use super::Session;
use crate::baselines::{SnapshotFile, SourceFunctions};
use crate::build::leg::{self, DeviceKind, Leg};
use crate::build::toolchain::gpu;
use crate::build::workspace::{
    Places, TestPackage, Workspace, WorkspaceError, branch, commit, line_address,
    pending_of_results, uncommitted,
};
use crate::discovery::archive::Unpacked;
use crate::invocation::devices::{Probe, Sharing};
use crate::invocation::options::{Mode, Options};
use crate::invocation::values::{CargoOptions, UnpackOptions};
use crate::system::error::Failure;

/// What is run, and where.
pub(super) struct Targets {
    pub(super) packages: Vec<TestPackage>,
    pub(super) legs: Vec<Leg>,
    /// The workspace with the features that only builds for a GPU have, if there are any.
    pub(super) with_features: Option<Workspace>,
    /// What the user should know about the packages before they are built.
    pub(super) notes: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum TestSource {
    Workspace,
    Archive(Box<Unpacked>),
}

impl TestSource {
    pub(crate) fn open(
        options: &UnpackOptions,
        cargo: &CargoOptions,
    ) -> Result<(Self, Workspace), Failure> {
        let Some(file) = &options.archive_file else {
            return Ok((Self::Workspace, Workspace::load(cargo)?));
        };
        let archive = Unpacked::open(file, options)?;
        let workspace = archive.workspace();
        Ok((Self::Archive(Box::new(archive)), workspace))
    }

    pub(crate) fn archive(&self) -> Option<&Unpacked> {
        match self {
            Self::Workspace => None,
            Self::Archive(archive) => Some(archive),
        }
    }

    /// Without targets, a folder for the archive is emptied.
    pub(super) fn targets(
        &mut self,
        workspace: &Workspace,
        options: &Options,
        (sharing, probe): (Sharing, Probe),
    ) -> Result<Targets, Failure> {
        let (requested, machine) = (&options.requested, &options.machine);
        let launcher = &options.scheduling.launcher;
        match self {
            Self::Workspace => {
                let mut packages = workspace.select(&options.cargo)?;
                let can_use_cuda = packages.iter().any(|package| package.can_use_cuda);
                let lacks =
                    (!can_use_cuda).then_some("no package depends on candle-core or cudarc");
                let probe = || gpu::probe(probe, launcher);
                let legs = leg::resolve(requested, machine, lacks, sharing, probe)?;
                let kinds: Vec<DeviceKind> = legs.iter().map(|leg| leg.kind).collect();
                let chosen = (&options.package_features, kinds.as_slice());
                let (with_features, mut notes) =
                    workspace.switch_on(&mut packages, chosen, &options.cargo)?;
                notes.extend(workspace.left_out(&options.cargo));
                let graph = with_features.as_ref().unwrap_or(workspace);
                for other in graph.other_candles(&packages) {
                    if other.is_only {
                        return Err(WorkspaceError::OtherCandle(Box::new(other)).into());
                    }
                    let steps = other.hint().replace('\n', "\n  ");
                    notes.push(format!("{}\n  {steps}", other.message()));
                }
                Ok(Targets { packages, legs, with_features, notes })
            }
            Self::Archive(archive) => {
                let legs = archive.legs(requested, machine, (launcher, sharing), gpu::gpus)?;
                // After the last check that can refuse the archive.
                archive.keep();
                let packages = archive.packages(workspace);
                Ok(Targets { packages, legs, with_features: None, notes: Vec::new() })
            }
        }
    }
}

impl Session {
    pub(crate) fn compiled_in(&self) -> Option<&Path> {
        self.source.archive().map(Unpacked::compiled_in)
    }

    pub(crate) fn names_targets(&self) -> bool {
        match &self.source {
            TestSource::Workspace => self.options.cargo.names_targets(),
            TestSource::Archive(archive) => archive.names_targets(),
        }
    }

    pub(crate) fn results_directory(&self) -> PathBuf {
        let default = || match self.source {
            TestSource::Workspace => self.workspace.results_directory(),
            // The folder of an extracted archive may be temporary. Cargo is not needed to run an
            // archive, so it is not asked either.
            TestSource::Archive(_) => Places::here(&CargoOptions::default()).results_directory(),
        };
        self.options.results.clone().unwrap_or_else(default)
    }

    /// `None` if they are written next to the baselines.
    pub(crate) fn pending_directory(&self) -> Option<PathBuf> {
        match (&self.source, self.options.mode) {
            // The folder of an extracted archive may be temporary, but results are kept.
            (TestSource::Workspace, _) if self.options.own_pending => {
                Some(pending_of_results(&self.results_directory()))
            }
            (TestSource::Archive(_), _) => Some(pending_of_results(&self.results_directory())),
            (TestSource::Workspace, Mode::Ci) => Some(self.workspace.pending_directory()),
            (TestSource::Workspace, Mode::Local) => None,
        }
    }

    /// The folder of the workspace that the baselines of a package belong to.
    pub(crate) fn baselines_of(&self, package: &TestPackage) -> PathBuf {
        match &self.source {
            TestSource::Workspace => package.folder().to_owned(),
            TestSource::Archive(archive) => archive.baselines_of(package.folder()),
        }
    }

    pub(crate) fn written(&self, file: &SnapshotFile) -> SourceFunctions {
        match &self.source {
            TestSource::Workspace => SourceFunctions::of(file, self.workspace.root()),
            TestSource::Archive(archive) => archive.written(&self.roots().in_workspace(&file.path)),
        }
    }

    /// What was not committed, if anything.
    pub(crate) fn uncommitted(&self) -> Option<String> {
        match &self.source {
            TestSource::Workspace => uncommitted(self.workspace.root()),
            TestSource::Archive(archive) => archive.uncommitted(),
        }
    }

    /// An archive runs on machines without git.
    pub(crate) fn branch(&self) -> Option<String> {
        match &self.source {
            TestSource::Workspace => branch(self.workspace.root()),
            TestSource::Archive(_) => None,
        }
    }

    /// The address of a line of the sources of this run, as [`line_address`] makes it.
    pub(crate) fn line_address(&self) -> Option<String> {
        match &self.source {
            TestSource::Workspace => line_address(self.workspace.root(), &self.commit()?),
            TestSource::Archive(_) => None,
        }
    }

    pub(crate) fn commit(&self) -> Option<String> {
        match &self.source {
            TestSource::Workspace => commit(self.workspace.root()),
            TestSource::Archive(archive) => archive.commit(),
        }
    }
}
