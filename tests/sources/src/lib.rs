//! The sources of the dependencies with which this workspace is built, for tests that compare lists
//! of this repository with them. A list that is compared only with itself cannot fail when a new
//! version of candle or cudarc adds, renames or changes a function.

pub mod c;
pub mod cuda;
pub mod rust;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};

/// Returns the folder of this workspace.
pub fn workspace() -> &'static Path {
    static WORKSPACE: OnceLock<PathBuf> = OnceLock::new();
    WORKSPACE.get_or_init(|| metadata().workspace_root.clone().into())
}

/// Returns the folder of a package that this workspace depends on, in the version of Cargo.lock.
///
/// # Panics
///
/// If the workspace has no such dependency.
pub fn folder(package: &str) -> PathBuf {
    let found = metadata().packages.iter().find(|candidate| candidate.name == package);
    let found = found.unwrap_or_else(|| panic!("{package} is not a dependency of the workspace"));
    found.manifest_path.parent().expect("the folder of a manifest").into()
}

/// Returns the text of a source file.
///
/// # Panics
///
/// If the file cannot be read.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
            // Without it candle does not depend on candle-kernels and cudarc.
            .features(CargoOpt::SomeFeatures(vec!["memcheck-runtime/candle-cuda".to_owned()]))
            // Only this platform, because the crates of other platforms were not fetched.
            .other_options(["--filter-platform".to_owned(), "x86_64-unknown-linux-gnu".to_owned()])
            .exec()
            .expect("cargo knows the dependencies")
    })
}
