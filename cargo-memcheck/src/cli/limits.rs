//! Limits on the command line: stronger than anything else that says them.

use memcheck_core::bound::Bound;
use memcheck_core::capacity::Capacity;
use memcheck_core::limits::Layer;
use memcheck_core::settings::{Written, WrittenError};
use memcheck_core::size::Size;
use memcheck_core::tolerance::Tolerance;

/// One flag per limit.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Limits (stronger than attribute and configuration)")]
pub(crate) struct LimitFlags {
    /// Most bytes that live memory may grow by in an iteration ("64 KiB").
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_growth: Option<Size>,
    /// Most bytes live at once, set-up included ("1 GiB"), or a share of another test's peak ("0.6 x other_test").
    #[arg(long, value_name = "BOUND")]
    pub(crate) max_peak: Option<Bound>,
    /// Most bytes still live when the test body has returned.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_retained: Option<Size>,
    /// Most allocations in one measured iteration.
    #[arg(long, value_name = "N")]
    pub(crate) max_allocations: Option<u64>,
    /// Most bytes an iteration by which the driver's pool, or NVML's figure, may grow.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_reserved_growth: Option<Size>,
    /// What a test must fit into on a GPU: a size ("24 GiB") or a card ("rtx4090").
    #[arg(long, value_name = "CAPACITY")]
    pub(crate) fits: Option<Capacity>,
    /// Measured iterations.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<u32>,
    /// Iterations before the measured ones.
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,
    /// Measured iterations at most, if the first of them leave a test undecided.
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// How long an undecided test is followed beyond its iterations ("10s").
    #[arg(long, value_name = "DURATION")]
    pub(crate) evidence: Option<String>,
    /// How far above its baseline a figure may be ("2%", "64 KiB" or "2% | 64 KiB").
    #[arg(long, value_name = "TOLERANCE")]
    pub(crate) tolerance: Option<Tolerance>,
    /// How long a test may take ("60s", "10m").
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
}

/// How long and how often a test is run whose other limits are not asked for.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct PaceFlags {
    /// Measured iterations.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<u32>,
    /// Iterations before the measured ones.
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,
    /// How long a test may take ("60s", "10m").
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
}

impl From<PaceFlags> for LimitFlags {
    fn from(PaceFlags { iterations, warmup, timeout }: PaceFlags) -> Self {
        Self { iterations, warmup, timeout, ..Self::default() }
    }
}

impl LimitFlags {
    /// The same as a layer of limits.
    pub(crate) fn layer(&self) -> Result<Layer, WrittenError> {
        let Self {
            max_growth,
            max_peak,
            max_retained,
            max_allocations,
            max_reserved_growth,
            fits,
            iterations,
            warmup,
            max_iterations,
            evidence,
            tolerance,
            timeout,
        } = self;
        Layer::try_from(Written {
            max_growth: *max_growth,
            max_peak: max_peak.clone(),
            max_retained: *max_retained,
            max_allocations: *max_allocations,
            max_reserved_growth: *max_reserved_growth,
            fits: *fits,
            iterations: *iterations,
            warmup: *warmup,
            max_iterations: *max_iterations,
            evidence: evidence.clone(),
            tolerance: *tolerance,
            timeout: timeout.clone(),
            ..Written::default()
        })
    }
}
