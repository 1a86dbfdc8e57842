//! The first page of an archive, and that of line tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;
use memcheck_core::device::Request;
use serde::{Deserialize, Serialize};

use super::elf::Target;
use super::file::{Head, Page};
use crate::build::NotBuilt;
use crate::devices::Kind;
use crate::libraries::SEARCH_PATH;
use crate::snapshots::Written;

/// The folder that mirrors the workspace.
pub(super) const WORKSPACE: &str = "workspace";

/// Variables of a test with paths of the machine that it was built on.
pub(super) const WITH_PATHS: [&str; 5] =
    ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", SEARCH_PATH, "OUT_DIR"];

/// What an archive holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    #[serde(flatten)]
    pub(super) head: Head,
    /// The machines that it was built for.
    pub(super) target: Target,
    /// The commit of the sources, where git knows one.
    pub(super) commit: Option<String>,
    /// The build profile, and the features of the command line, for people.
    pub(super) profile: String,
    pub(super) features: Vec<String>,
    /// The devices that were asked for.
    pub(super) devices: Vec<Request>,
    /// What cargo said of the workspace; its paths are those of the machine
    /// that it was built on.
    pub(super) metadata: Metadata,
    /// The ids of the packages that were selected.
    pub(super) packages: Vec<String>,
    /// Whether only some kinds of targets were built.
    pub(super) names_targets: bool,
    /// The baselines by their place in the workspace, with what the sources have
    /// of their tests.
    #[serde(default)]
    pub(super) baselines: BTreeMap<PathBuf, Written>,
    /// What was built, for each kind of device.
    pub(super) builds: Vec<Build>,
}

/// What was built for one kind of device.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) kind: Kind,
    pub(super) executables: Vec<Executable>,
    /// Targets that were left out.
    pub(super) not_built: Vec<NotBuilt>,
    /// The simulated NVML, by its name in the archive.
    pub(super) nvml: Option<PathBuf>,
}

/// A test executable.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Executable {
    /// As nextest names it.
    pub(super) id: String,
    /// The id of its package.
    pub(super) package: String,
    /// Its name in the archive.
    pub(super) file: PathBuf,
    /// How many memory tests it carries; unknown where it could not be asked.
    pub(super) tests: Option<usize>,
    /// Variables that cargo would set for it, apart from those with paths.
    pub(super) environment: Vec<(String, String)>,
    /// What its build script wrote: where that was, and its name in the archive.
    pub(super) out_dir: Option<(PathBuf, PathBuf)>,
}

/// An archive of line tables.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tables {
    /// Its id is that of the archive whose executables they belong to.
    #[serde(flatten)]
    pub(super) head: Head,
}

impl Page for Manifest {
    const NAME: &'static str = "memcheck-archive.json";
    const KIND: &'static str = "an archive of cargo memcheck";

    fn head(&self) -> &Head {
        &self.head
    }
}

impl Page for Tables {
    const NAME: &'static str = "memcheck-line-tables.json";
    const KIND: &'static str = "an archive of line tables";

    fn head(&self) -> &Head {
        &self.head
    }
}

/// The folder of a kind of device.
pub(super) fn folder(kind: Kind) -> &'static Path {
    Path::new(match kind {
        Kind::Cpu => "cpu",
        Kind::Sim => "sim",
        Kind::Cuda => "cuda",
    })
}

/// The folder of the libraries that were built with its executables.
pub(super) fn libraries(kind: Kind) -> PathBuf {
    folder(kind).join("lib")
}
