//! The probes: they see the memory calls of the program.
//!
//! A probe forwards the call and reports its result to the [ledger](crate::ledger). It makes no
//! decisions. `host` is an allocator, `c_heap` is between C code and the C library, and `cuda` is
//! between candle and the driver. `pool` and
//! `nvml` read counters of other software, and `cupti` reports the allocations of libraries.
//! `recording` stores the calls themselves, and `card` identifies the device.

pub(crate) mod c_heap;
pub(crate) mod card;
pub(crate) mod host;
pub(crate) mod recording;
pub(crate) mod tensor;

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
// Compiled for tests too, because its tests do not need CUDA.
#[cfg(any(feature = "cuda", test))]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only tests use it here"))]
pub(crate) mod cupti;
#[cfg(feature = "cuda")]
pub(crate) mod nvml;
#[cfg(feature = "cuda")]
pub(crate) mod pool;
