//! The commands that compare runs. A build without the feature `comparison` does not have them.

mod bisect;
mod compare;
mod history;

use clap::Subcommand;

pub(crate) use bisect::{BisectArgs, BisectStepArgs};
pub(crate) use compare::CompareArgs;
pub(crate) use history::HistoryArgs;

use super::FormFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum ComparisonCommand {
    /// Compare two runs, or a branch with another: `compare main`.
    #[command(visible_alias = "diff")]
    Compare(CompareArgs),
    /// Find the commit, or the update of a dependency, that changed a figure of a test.
    Bisect(BisectArgs),
    /// Run one step of `git bisect run`.
    #[command(hide = true)]
    BisectStep(BisectStepArgs),
    /// Plot a figure of a test over the runs of a history.
    History(HistoryArgs),
}

impl ComparisonCommand {
    /// `None` for a step of `git bisect run`, whose stdout is that of `bisect`.
    pub(crate) fn form(&self) -> Option<&FormFlags> {
        match self {
            Self::Compare(args) => Some(&args.output.form),
            Self::Bisect(args) => Some(&args.output.form),
            Self::BisectStep(_) => None,
            Self::History(args) => Some(&args.output.form),
        }
    }
}
