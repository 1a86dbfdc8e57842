//! The arguments of `compare`.

use memcheck_core::tolerance::Tolerance;

use crate::invocation::cli::{OutputFlags, WorkspaceFlags};
use crate::invocation::values::{DependencyUpdate, ReportFile};

/// `cargo memcheck compare`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CompareArgs {
    /// Base: a directory of results, or a revision of git (default with --update: HEAD).
    #[arg(value_name = "BASE", required_unless_present = "update")]
    pub(crate) base: Option<String>,
    /// Head: a directory of results, or a revision (default: the working tree if the base is a
    /// revision, otherwise the results of the last run).
    #[arg(value_name = "HEAD")]
    pub(crate) head: Option<String>,
    /// Compare the base with the same sources after updates in Cargo.lock: to the latest version
    /// that the requirements allow, or to VERSION (may be repeated or separated by commas). Both
    /// sides are built in a worktree, without uncommitted changes.
    #[arg(long, value_name = "NAME[@VERSION]", value_delimiter = ',', conflicts_with = "head")]
    pub(crate) update: Vec<DependencyUpdate>,
    /// Tolerance within which figures are the same ("0%", "1% | 4 KiB"; default: that of each
    /// test).
    #[arg(long, value_name = "TOLERANCE")]
    pub(crate) tolerance: Option<Tolerance>,
    /// End with exit code 100 if a test is worse in the head.
    #[arg(long)]
    pub(crate) fail_on_regression: bool,
    /// Write the comparison: markdown=PATH, html=PATH or json=PATH (may be repeated).
    #[arg(long, value_name = "KIND=PATH", help_heading = "Reports")]
    pub(crate) report: Vec<ReportFile>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
    /// Arguments of `run`, for both revisions.
    #[arg(last = true, value_name = "RUN-ARGS")]
    pub(crate) run: Vec<String>,
}
