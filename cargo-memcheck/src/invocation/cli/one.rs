//! Flags of the commands for one test, `fit` and `plan`. `profile` shares the flags that start its
//! process.

use memcheck_core::tolerance::Tolerance;

use super::limits::PaceFlags;
use super::{OutputFlags, SelectFlags};
use crate::invocation::values::CargoOptions;

/// The flags that `fit` and `plan` share with `run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct OneTestFlags {
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    #[command(flatten)]
    pub(crate) launch: LaunchFlags,
    #[command(flatten)]
    pub(crate) pace: PaceFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
    /// Arguments for the test harness.
    #[arg(last = true, value_name = "LIBTEST-ARGS")]
    pub(crate) libtest: Vec<String>,
}

/// Flags that start the process.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct LaunchFlags {
    /// Show the output of the test while it runs.
    #[arg(long, visible_alias = "nocapture")]
    pub(crate) no_capture: bool,
    /// Command that starts each process ("srun --gres=gpu:1").
    ///
    /// The command line of the process follows it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) runner: Option<String>,
}

/// `--margin`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct MarginFlag {
    /// Part of each device to leave free: a share ("5%"), bytes ("2 GiB"), or the larger of both.
    #[arg(long, value_name = "MARGIN", default_value = "5%")]
    margin: Option<Tolerance>,
}

impl MarginFlag {
    pub(crate) fn tolerance(&self) -> Tolerance {
        self.margin.unwrap_or(Tolerance::NONE)
    }
}
