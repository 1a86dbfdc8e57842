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

pub(super) const WORKSPACE: &str = "workspace";

/// They contain paths of the machine that built the test, so unpacking sets all but `CARGO` again.
pub(super) const WITH_PATHS: [&str; 5] =
    ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", SEARCH_PATH, "OUT_DIR"];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    #[serde(flatten)]
    pub(super) head: ArchiveHeader,
    pub(super) target: ElfTarget,
    pub(super) commit: Option<String>,
    /// Profile and features serve only to describe the archive.
    pub(super) profile: String,
    pub(super) features: Vec<String>,
    pub(super) devices: Vec<Request>,
    /// Its paths are those of the machine that built the archive.
    pub(super) metadata: Metadata,
    pub(super) packages: Vec<String>,
    pub(super) names_targets: bool,
    /// By path in the workspace.
    #[serde(default)]
    pub(super) baselines: BTreeMap<PathBuf, SourceFunctions>,
    pub(super) builds: Vec<Build>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) kind: DeviceKind,
    pub(super) executables: Vec<Executable>,
    pub(super) not_built: Vec<NotBuilt>,
    pub(super) nvml: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Executable {
    /// In the form of nextest.
    pub(super) id: String,
    pub(super) package: String,
    /// Name in the archive.
    pub(super) file: PathBuf,
    /// `None` if the tests could not be listed.
    pub(super) tests: Option<usize>,
    /// Without those that contain paths.
    pub(super) environment: Vec<(String, String)>,
    /// The path on the machine that built it, and the name in the archive.
    pub(super) out_dir: Option<(PathBuf, PathBuf)>,
}

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

pub(super) fn folder(kind: DeviceKind) -> &'static Path {
    Path::new(match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Sim => "sim",
        DeviceKind::Cuda => "cuda",
    })
}

pub(super) fn libraries(kind: DeviceKind) -> PathBuf {
    folder(kind).join("lib")
}
