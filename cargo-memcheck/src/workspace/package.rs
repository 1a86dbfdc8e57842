//! A package with memory tests, and what its build for CUDA takes.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_metadata::Package;

/// A package that can carry memory tests.
#[derive(Debug, Clone)]
pub(crate) struct TestPackage {
    /// As cargo knows it.
    pub(crate) package: Package,
    /// How this package calls its dependency on the runtime.
    pub(super) runtime: String,
    /// The features of the runtime that switch CUDA on in the candle crates
    /// that this package can reach.
    pub(super) candle_features: BTreeSet<&'static str>,
    /// The version of candle-core that the runtime depends on.
    pub(crate) candle: Option<String>,
}

impl TestPackage {
    /// The name.
    pub(crate) fn name(&self) -> &str {
        &self.package.name
    }

    /// The folder of its Cargo.toml.
    pub(crate) fn folder(&self) -> &Path {
        self.package.manifest_path.parent().expect("a manifest lies in a folder").as_std_path()
    }

    /// The features to switch on for a build with CUDA, as `dependency/feature`.
    /// Cargo takes these for dev-dependencies too, and wants the name that the
    /// package itself gave to the dependency.
    pub(crate) fn cuda_features(&self, first: &str) -> Vec<String> {
        std::iter::once(first)
            .chain(self.candle_features.iter().copied())
            .map(|feature| format!("{}/{feature}", self.runtime))
            .collect()
    }
}
