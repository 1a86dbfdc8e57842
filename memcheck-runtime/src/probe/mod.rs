//! The probes: where the program's memory calls are seen.
//!
//! A probe forwards the call, tells the [ledger](crate::ledger) what came of
//! it, and decides nothing. `host` is an allocator, `cuda` stands between
//! candle and the driver; `pool` and `nvml` read counters that others keep, and
//! `cupti` listens to who else allocates.
//! `recording` keeps the calls themselves, and `card` says whose they are.

pub(crate) mod card;
pub(crate) mod host;
pub(crate) mod recording;
pub(crate) mod tensor;

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
// Its tests need no CUDA.
#[cfg(any(feature = "cuda", test))]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only tests use it here"))]
pub(crate) mod cupti;
#[cfg(feature = "cuda")]
pub(crate) mod nvml;
#[cfg(feature = "cuda")]
pub(crate) mod pool;
