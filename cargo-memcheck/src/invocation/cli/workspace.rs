//! The flags of commands that find a workspace but build nothing in it by themselves.

use std::path::PathBuf;

use crate::invocation::values::CargoOptions;

/// `--manifest-path` and `--target-dir`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WorkspaceFlags {
    /// Path to Cargo.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Directory for build output.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) target_dir: Option<PathBuf>,
}

impl WorkspaceFlags {
    pub(crate) fn cargo(&self) -> CargoOptions {
        let Self { manifest_path, target_dir } = self.clone();
        CargoOptions { manifest_path, target_dir, ..CargoOptions::default() }
    }
}
