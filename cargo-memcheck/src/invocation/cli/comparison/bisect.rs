//! The arguments of `bisect`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use memcheck_core::judgement::baseline::FIGURES;
use memcheck_core::tolerance::Tolerance;

use crate::invocation::cli::{OutputFlags, WorkspaceFlags};
use crate::invocation::values::BadChange;

/// `cargo memcheck bisect`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BisectArgs {
    /// Tests whose path contains this.
    #[arg(value_name = "TEST")]
    pub(crate) test: String,
    /// Match the path exactly instead of by substring.
    #[arg(long)]
    pub(crate) exact: bool,
    /// Revision that is known to be good.
    #[arg(long, value_name = "REV")]
    pub(crate) good: String,
    /// Revision that is known to be bad (default: HEAD; with --lock also the lock file of the working
    /// tree).
    #[arg(long, value_name = "REV")]
    pub(crate) bad: Option<String>,
    /// Find the update of a dependency in Cargo.lock instead of the commit.
    #[arg(long)]
    pub(crate) lock: bool,
    /// Only this figure decides (default: every figure of a baseline, and findings).
    #[arg(long, value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(FIGURES))]
    pub(crate) figure: Option<String>,
    /// Which change of a figure is bad.
    #[arg(long, value_name = "CHANGE", default_value = "rise")]
    pub(crate) change: BadChange,
    /// Tolerance within which figures are the same ("0%", "1% | 4 KiB"; default: that of each
    /// test).
    #[arg(long, value_name = "TOLERANCE")]
    pub(crate) tolerance: Option<Tolerance>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
    /// Arguments of `run`, for every revision.
    #[arg(last = true, value_name = "RUN-ARGS")]
    pub(crate) run: Vec<String>,
}

/// `cargo memcheck bisect-step`, which `git bisect run` starts.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BisectStepArgs {
    /// File with the description of the bisection.
    #[arg(value_name = "FILE")]
    pub(crate) description: PathBuf,
}
