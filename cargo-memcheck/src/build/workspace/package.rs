//! A package with memory tests, and the features that its build for CUDA needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::Package;

use super::features::DeviceFeatures;
use crate::build::leg::DeviceKind;

#[derive(Debug, Clone)]
pub(crate) struct TestPackage {
    pub(crate) package: Package,
    /// The name that the package gives to its dependency on the runtime.
    pub(super) runtime: String,
    pub(super) candle_features: BTreeSet<&'static str>,
    /// `dependency/feature` of the package's own candle crates, if its runtime does not name candle.
    pub(super) own_features: BTreeSet<String>,
    /// Those of the package that only builds for this kind of device have.
    pub(crate) features: BTreeMap<DeviceKind, DeviceFeatures>,
    /// The version that the runtime names.
    pub(crate) candle: Option<String>,
    /// True if candle or cudarc is in the dependency graph of the package.
    pub(crate) can_use_cuda: bool,
}

impl TestPackage {
    pub(crate) fn name(&self) -> &str {
        &self.package.name
    }

    pub(crate) fn folder(&self) -> &Path {
        // The manifest of another program's metadata can be a name without a folder.
        self.package.manifest_path.parent().map_or(Path::new(""), |folder| folder.as_std_path())
    }

    /// As `dependency/feature`, with the name that the package gave to the dependency, which can be
    /// a dev-dependency.
    pub(crate) fn cuda_features(&self, first: &str) -> Vec<String> {
        std::iter::once(first)
            .chain(self.candle_features.iter().copied())
            .map(|feature| format!("{}/{feature}", self.runtime))
            .chain(self.own_features.iter().cloned())
            .collect()
    }
}
