//! The arguments of `report`.

use std::path::PathBuf;

use super::{BaselineFlags, OutputFlags, ReportFlags, WorkspaceFlags};
use crate::invocation::values::NoTests;

/// `cargo memcheck report`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReportArgs {
    /// Directories of results, as given to --results of a run (default: that of the last run).
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Join all shards of one run into one verdict, and collect their pending baselines below the
    /// target directory.
    #[arg(long, requires = "folders")]
    pub(crate) merge: bool,
    /// What to do if no test was selected in any shard.
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(crate) no_tests: NoTests,
    #[command(flatten)]
    pub(crate) baselines: BaselineFlags,
    #[command(flatten)]
    pub(crate) report: ReportFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
}
