//! The arguments of `history`.

use crate::invocation::cli::{OutputFlags, WorkspaceFlags};
use crate::invocation::values::{HistoryPlace, ReportFile};

/// `cargo memcheck history`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Tests whose path contains this.
    #[arg(value_name = "TEST")]
    pub(crate) test: String,
    /// Match the path exactly instead of by substring.
    #[arg(long)]
    pub(crate) exact: bool,
    /// File that runs with --history have written, or git for the notes of the commits (default:
    /// target/memcheck/history.jsonl).
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<HistoryPlace>,
    /// Figure to plot.
    #[arg(long, value_name = "NAME", default_value = "peak_allocated")]
    pub(crate) figure: String,
    /// Number of runs, the last ones; 0 for all.
    #[arg(long, value_name = "N", default_value = "60")]
    pub(crate) last: usize,
    /// Write the plots as a page: html=PATH.
    #[arg(long, value_name = "KIND=PATH", help_heading = "Reports")]
    pub(crate) report: Vec<ReportFile>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
}
