//! The arguments of `archive`.

use std::path::PathBuf;

use super::{BaselineFlags, OutputFlags};
use crate::invocation::values::CargoOptions;

/// `cargo memcheck archive`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ArchiveArgs {
    /// Path of the archive to write, by convention FILE.tar.zst.
    #[arg(long, value_name = "FILE")]
    pub(crate) archive_file: PathBuf,
    /// Destination of line tables: the executables (keep), none (strip), or a separate archive (a
    /// path).
    #[arg(long, value_name = "keep|strip|FILE", default_value = "keep")]
    pub(crate) line_tables: String,
    /// Device to build for: auto, cpu, sim, sim:CARD, cuda or cuda:N (may be repeated). A GPU is
    /// not needed.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Read this configuration file instead of .config/memcheck.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) config_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) baselines: BaselineFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
}
