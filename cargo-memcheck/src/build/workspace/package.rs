//! A package with memory tests, and the features that its build for CUDA needs.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_metadata::Package;

#[derive(Debug, Clone)]
pub(crate) struct TestPackage {
    /// Cargo's description of the package.
    pub(crate) package: Package,
    /// The name that the package gives to its dependency on the runtime.
    pub(super) runtime: String,
    /// The features of the runtime that enable CUDA in the candle crates that the package depends on.
    pub(super) candle_features: BTreeSet<&'static str>,
    /// The version of candle-core that the runtime depends on.
    pub(crate) candle: Option<String>,
}

impl TestPackage {
    pub(crate) fn name(&self) -> &str {
        &self.package.name
    }

    /// Returns the folder of the package's Cargo.toml.
    pub(crate) fn folder(&self) -> &Path {
        self.package.manifest_path.parent().expect("a manifest is in a folder").as_std_path()
    }

    /// Returns the features to enable in a build with CUDA, as `dependency/feature`. Cargo accepts these for dev-dependencies too, but
    /// expects the dependency under the name that the package gave to it.
    pub(crate) fn cuda_features(&self, first: &str) -> Vec<String> {
        std::iter::once(first)
            .chain(self.candle_features.iter().copied())
            .map(|feature| format!("{}/{feature}", self.runtime))
            .collect()
    }
}
