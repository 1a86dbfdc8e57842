//! The page of an archive, and that of an archive of line tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::device::Request;
use memcheck_core::request::config;
use memcheck_core::wire::protocol::Entry;
use serde::{Deserialize, Serialize};

use super::format::PackedFile;
use crate::baselines::SourceFunctions;
use crate::build::compile::NotBuilt;
use crate::build::leg::DeviceKind;
use crate::system::elf::ElfTarget;
use crate::system::libraries::SEARCH_PATH;

pub(super) const WORKSPACE: &str = "workspace";
/// The folder of the tables of tests.
pub(super) const TESTS: &str = "tests";

/// They contain paths of the machine that built the test, so unpacking sets all but `CARGO` again.
pub(super) const WITH_PATHS: [&str; 5] =
    ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", SEARCH_PATH, "OUT_DIR"];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) target: ElfTarget,
    pub(super) commit: Option<String>,
    #[serde(default)]
    pub(super) uncommitted: Option<String>,
    /// Profile and features serve only to describe the archive.
    pub(super) profile: String,
    pub(super) features: Vec<String>,
    pub(super) devices: Vec<Request>,
    /// `cargo_metadata::Metadata` as JSON. Its paths are those of the machine that built the
    /// archive. It is a string because its values of any form take much more memory than their
    /// text, which has its own limit.
    pub(super) metadata: String,
    pub(super) packages: Vec<String>,
    pub(super) names_targets: bool,
    /// By path in the workspace.
    pub(super) baselines: BTreeMap<String, SourceFunctions>,
    pub(super) builds: Vec<Build>,
    pub(super) files: Vec<PackedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) kind: DeviceKind,
    /// The features that only this kind of device has, by the id of the package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) features: BTreeMap<String, Vec<String>>,
    pub(super) executables: Vec<ArchivedExecutable>,
    pub(super) not_built: Vec<NotBuilt>,
    /// Name in the archive.
    pub(super) nvml: Option<String>,
    /// Name of the [`TestTable`] in the archive.
    pub(super) tests: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ArchivedExecutable {
    /// In the form of nextest.
    pub(super) id: String,
    pub(super) package: String,
    /// Name in the archive.
    pub(super) file: String,
    /// `None` if the tests could not be listed.
    pub(super) tests: Option<usize>,
    /// Without those that contain paths.
    pub(super) environment: Vec<(String, String)>,
    /// The path on the machine that built it, and the name in the archive.
    pub(super) out_dir: Option<(PathBuf, String)>,
}

/// The tests of one kind of device, as the executables listed them on the machine that built them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TestTable {
    /// Version of the protocol.
    pub(super) memcheck: u32,
    /// In the order of the executables. `None` if the executable could not be listed.
    pub(super) executables: Vec<Option<Vec<Entry>>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tables {
    pub(super) files: Vec<PackedFile>,
}

pub(super) fn folder(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Sim => "sim",
        DeviceKind::Cuda => "cuda",
    }
}

pub(super) fn libraries(kind: DeviceKind) -> PathBuf {
    Path::new(folder(kind)).join("lib")
}

pub(super) fn test_table(kind: DeviceKind) -> String {
    format!("{TESTS}/{}.json", folder(kind))
}

/// The name of the configuration in the archive.
pub(super) fn configuration() -> String {
    format!("{WORKSPACE}/{}", config::PATH)
}
