//! The probes: they see the memory calls of the program.
//!
//! A probe forwards the call and reports its result to the [ledger](memcheck_ledger). It makes no
//! decisions. `cuda` is between candle and the driver, and `tensor` finds candle's tensors among the
//! blocks of the host. `pool` and `nvml` read counters of other software, and `cupti` reports the
//! allocations of libraries. `recording` stores the calls themselves, and `card` identifies the
//! device. `no_device` answers calls of CUDA in a build for the CPU. The allocators that count are in
//! memcheck-ledger.

#[cfg(any(feature = "candle", feature = "cuda"))]
pub(crate) mod card;
pub(crate) mod recording;
#[cfg(feature = "candle")]
pub(crate) mod tensor;
#[cfg(not(feature = "candle"))]
#[path = "no_tensors.rs"]
pub(crate) mod tensor;

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
// Compiled for tests too, because its tests do not need CUDA.
#[cfg(any(feature = "cuda", all(test, unix)))]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only tests use it here"))]
pub(crate) mod cupti;
#[cfg(all(unix, not(feature = "cuda")))]
pub(crate) mod no_device;
#[cfg(feature = "cuda")]
pub(crate) mod nvml;
#[cfg(feature = "cuda")]
pub(crate) mod pool;
