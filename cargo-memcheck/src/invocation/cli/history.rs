//! The arguments of `history`.

use std::path::PathBuf;

use super::{OutputFlags, WorkspaceFlags};

/// `cargo memcheck history`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Tests whose path contains this.
    #[arg(value_name = "TEST")]
    pub(crate) test: String,
    /// Match the path exactly instead of by substring.
    #[arg(long)]
    pub(crate) exact: bool,
    /// File that runs with --history have written (default: target/memcheck/history.jsonl).
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    /// Figure to plot.
    #[arg(long, value_name = "NAME", default_value = "peak_allocated")]
    pub(crate) figure: String,
    /// Number of runs, the last ones; 0 for all.
    #[arg(long, value_name = "N", default_value = "60")]
    pub(crate) last: usize,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
}
