//! Limits on the command line. They are stronger than limits from all other sources.

use memcheck_core::bound::Bound;
use memcheck_core::capacity::Capacity;
use memcheck_core::limits::Layer;
use memcheck_core::settings::{Written, WrittenError};
use memcheck_core::size::Size;
use memcheck_core::tolerance::Tolerance;

/// One flag for each limit.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Limits (stronger than attribute and configuration)")]
pub(crate) struct LimitFlags {
    /// Limit of the growth of live bytes per iteration, such as "64 KiB" (built-in default: 1 MiB).
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_growth: Option<Size>,
    /// Limit of the live bytes at any moment, set-up included: a size ("1 GiB") or a share of another test's peak ("0.6
    /// x other_test").
    #[arg(long, value_name = "BOUND")]
    pub(crate) max_peak: Option<Bound>,
    /// Limit of the bytes that are still live when the test body has returned (built-in default: 0 on a GPU, 64 KiB on
    /// the host).
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_retained: Option<Size>,
    /// Limit of the number of allocations in one measured iteration.
    #[arg(long, value_name = "N")]
    pub(crate) max_allocations: Option<u64>,
    /// Limit of the growth per iteration of the driver's pool, and of NVML's figure, in bytes.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_reserved_growth: Option<Size>,
    /// Capacity that a test must run in on a GPU: a size ("24 GiB") or a card ("rtx4090").
    #[arg(long, value_name = "CAPACITY")]
    pub(crate) fits: Option<Capacity>,
    /// Number of measured iterations (built-in default: 10).
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<u32>,
    /// Number of iterations before the measured ones (built-in default: 2).
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,
    /// Maximum of measured iterations of a test whose growth is undecided (built-in default: 1000).
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u32>,
    /// Maximum time for further iterations of a test whose growth is undecided (built-in default: 10s).
    #[arg(long, value_name = "DURATION")]
    pub(crate) evidence: Option<String>,
    /// Tolerance above the baseline: a share ("2%"), bytes ("64 KiB"), or the larger of both ("2% | 64 KiB").
    #[arg(long, value_name = "TOLERANCE")]
    pub(crate) tolerance: Option<Tolerance>,
    /// Maximum duration of a test, such as "60s" (built-in default: 10m).
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
}

/// The number of iterations and the duration of a test, for commands that do not ask for its other limits.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct PaceFlags {
    /// Number of measured iterations.
    #[arg(long, value_name = "N")]
    pub(crate) iterations: Option<u32>,
    /// Number of iterations before the measured ones.
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,
    /// Maximum duration of a test ("60s", "10m").
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
}

impl From<PaceFlags> for LimitFlags {
    fn from(PaceFlags { iterations, warmup, timeout }: PaceFlags) -> Self {
        Self { iterations, warmup, timeout, ..Self::default() }
    }
}

impl LimitFlags {
    /// Converts the flags to a layer of limits.
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
