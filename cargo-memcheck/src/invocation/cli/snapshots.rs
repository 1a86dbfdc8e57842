//! The arguments of `accept`, `reject`, `review` and `prune`.

use std::path::PathBuf;

use super::{BaselineFlags, CiFlags, OutputFlags, SelectFlags};
use crate::invocation::values::CargoOptions;

/// `cargo memcheck accept | reject | review`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// Only snapshots of tests whose path contains one of these (default: all).
    #[arg(value_name = "FILTERS")]
    pub(crate) filters: Vec<String>,
    /// Directory of pending snapshots, which a run with --ci wrote.
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) baselines: BaselineFlags,
    /// Only snapshots of this package (may be repeated).
    #[arg(short = 'p', long = "package", value_name = "SPEC")]
    pub(crate) packages: Vec<String>,
    /// Path to Cargo.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// `cargo memcheck prune`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct PruneArgs {
    /// Only list the baselines that would be removed (always on in CI).
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    /// Command that lists the tests of a binary that cannot be started on this machine ("srun
    /// --gres=gpu:1").
    #[arg(long, value_name = "COMMAND", help_heading = "Running")]
    pub(crate) runner: Option<String>,
    #[command(flatten)]
    pub(crate) ci: CiFlags,
    #[command(flatten)]
    pub(crate) baselines: BaselineFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
}
