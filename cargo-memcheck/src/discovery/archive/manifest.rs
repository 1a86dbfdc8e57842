//! The first page of an archive, and that of an archive of line tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;
use memcheck_core::device::Request;
use serde::{Deserialize, Serialize};

use super::elf::ElfTarget;
use super::file::{ArchiveHeader, Page};
use crate::baselines::SourceFunctions;
use crate::build::compile::NotBuilt;
use crate::invocation::devices::DeviceKind;
use crate::system::libraries::SEARCH_PATH;

/// The folder in an archive that mirrors the workspace.
pub(super) const WORKSPACE: &str = "workspace";

/// Variables of a test that contain paths of the machine that built it. They are not packed; unpacking sets all but
/// `CARGO` again.
pub(super) const WITH_PATHS: [&str; 5] =
    ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", SEARCH_PATH, "OUT_DIR"];

/// The contents of an archive.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    #[serde(flatten)]
    pub(super) head: ArchiveHeader,
    /// The kind of machine that the executables were built for.
    pub(super) target: ElfTarget,
    /// The commit of the sources, if git has one.
    pub(super) commit: Option<String>,
    /// The build profile and the features of the command line. They serve only to describe the archive.
    pub(super) profile: String,
    pub(super) features: Vec<String>,
    /// The devices that were requested for the archive.
    pub(super) devices: Vec<Request>,
    /// Cargo's metadata of the workspace. Its paths are those of the machine that built the archive.
    pub(super) metadata: Metadata,
    /// Ids of the selected packages.
    pub(super) packages: Vec<String>,
    /// True if the build was restricted to some kinds of targets.
    pub(super) names_targets: bool,
    /// The baselines by their path in the workspace, each with whether the sources had its test and function.
    #[serde(default)]
    pub(super) baselines: BTreeMap<PathBuf, SourceFunctions>,
    /// The builds, one for each kind of device.
    pub(super) builds: Vec<Build>,
}

/// The build for one kind of device.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) kind: DeviceKind,
    pub(super) executables: Vec<Executable>,
    /// Targets that cargo left out because their features are off.
    pub(super) not_built: Vec<NotBuilt>,
    /// Name of the simulated NVML's library in the archive.
    pub(super) nvml: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Executable {
    /// Id in the form of nextest.
    pub(super) id: String,
    /// Id of its package.
    pub(super) package: String,
    /// Name in the archive.
    pub(super) file: PathBuf,
    /// Number of its memory tests. `None` if it could not be listed.
    pub(super) tests: Option<usize>,
    /// Variables that cargo would set for it, except those with paths.
    pub(super) environment: Vec<(String, String)>,
    /// Output directory of its build script: the path on the machine that built it, and the name in the archive.
    pub(super) out_dir: Option<(PathBuf, PathBuf)>,
}

/// The first page of an archive of line tables.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tables {
    /// Its id is that of the archive that the line tables belong to.
    #[serde(flatten)]
    pub(super) head: ArchiveHeader,
}

impl Page for Manifest {
    const NAME: &'static str = "memcheck-archive.json";
    const KIND: &'static str = "an archive of cargo memcheck";

    fn head(&self) -> &ArchiveHeader {
        &self.head
    }
}

impl Page for Tables {
    const NAME: &'static str = "memcheck-line-tables.json";
    const KIND: &'static str = "an archive of line tables";

    fn head(&self) -> &ArchiveHeader {
        &self.head
    }
}

/// Returns the folder of a kind of device in an archive.
pub(super) fn folder(kind: DeviceKind) -> &'static Path {
    Path::new(match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Sim => "sim",
        DeviceKind::Cuda => "cuda",
    })
}

/// Returns the folder of the libraries that were built with the executables of a kind of device.
pub(super) fn libraries(kind: DeviceKind) -> PathBuf {
    folder(kind).join("lib")
}
