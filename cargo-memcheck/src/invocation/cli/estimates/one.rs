//! Flags of the commands for one test, `fit` and `plan`.

use memcheck_core::tolerance::Tolerance;

use crate::invocation::cli::limits::PaceFlags;
use crate::invocation::cli::{LaunchFlags, OutputFlags, SelectFlags};
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
