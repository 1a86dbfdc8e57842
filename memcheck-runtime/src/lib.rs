//! Memory tests for candle: exact to the byte, with or without a GPU.
//!
//! ```no_run
//! use memcheck_runtime::{Trial, mem_test};
//!
//! #[mem_test(max_growth = "0 B")]
//! fn forward(trial: &mut Trial) -> candle_core::Result<()> {
//!     let weights = candle_core::Tensor::zeros((64, 64), candle_core::DType::F32, trial.device())?;
//!     trial.iterate(|_i| {
//!         weights.matmul(&weights)?;
//!         Ok(())
//!     })
//! }
//! # fn main() {}
//! ```
//!
//! A memory test is an ordinary `#[test]`. Under `cargo test` and `cargo nextest run` it starts a
//! child process for its measurement. `cargo memcheck` runs it on a simulated GPU, a real GPU or
//! the CPU, and compares it with its baseline.
//!
//! Of memcheck's crates, a package depends on this one only. The command is `cargo-memcheck`.
//!
//! Data flows in one direction through the modules of this crate:
//!
//! ```text
//! probe ─► ledger ─► trial ─► recorder ─► record ─► verdict ─► snapshot, report
//! (what was called)  (iterations)        (memcheck-core)
//! ```
//!
//! A memory test begins in the module `entry`: it either starts a child process (`isolate`) or is
//! that process (`session`).

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "criterion")]
pub mod criterion;
pub mod usage;

mod at_end;
mod attribution;
#[cfg(feature = "candle")]
mod audit;
mod available;
mod canary;
#[cfg(feature = "candle")]
mod cleanup;
mod clock;
mod description;
mod device;
#[cfg(feature = "cuda")]
mod driver;
mod entry;
mod executable;
mod fault_sweep;
mod following;
mod forked;
mod judged;
mod kernel;
#[cfg(feature = "candle")]
mod largest_batch;
mod last_state;
mod live;
mod operations;
mod os;
mod outcome;
#[cfg(feature = "candle")]
mod phases;
mod probe;
mod process_memory;
mod progress;
mod quiet_thread;
mod reads;
mod recorder;
mod refusal;
mod scope;
mod snapshot;
mod trace;
mod trial;
mod unsimulated;

#[cfg(feature = "candle")]
pub use audit::{Alert, AlertReason, Audit};
#[cfg(feature = "candle")]
pub use cleanup::Cleanup;
pub use device::Error;
pub use kernel::{KernelElement, KernelLaunch, register_kernel, register_kernel_with};
#[cfg(feature = "candle")]
pub use largest_batch::{LargestBatch, LargestBatchError, largest_batch};
pub use memcheck_core::measurement::placement::DeviceMap;
pub use memcheck_ledger::host::{SCRATCH_ALIGNMENT, TENSOR_CLASS, Tracking};
pub use memcheck_macros::mem_test;
pub use scope::Scopes;
pub use trial::Trial;
pub use usage::{Usage, usage_by_space};
#[cfg(feature = "candle")]
pub use usage::{log_usage, release_cached, reset_peak, usage};

/// Items for the code that the attribute generates. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use linkme;
    pub use memcheck_core::bound::Bound;
    pub use memcheck_core::capacity::Capacity;
    pub use memcheck_core::cards::find as card;
    pub use memcheck_core::device::Need;
    pub use memcheck_core::limits::Layer;
    pub use memcheck_core::size::Size;
    pub use memcheck_core::tolerance::Tolerance;
    pub use memcheck_core::values::Contents;
    pub use std::clone::Clone;

    pub use crate::attribution::{count, count_c_heap, follow};
    /// True if a body without an argument has no device: without candle's types it can have one.
    pub const DEVICELESS: bool = cfg!(feature = "candle");

    pub use crate::description::{DESCRIPTIONS, Description, bound, fault_sweep};
    pub use crate::entry::run;
    pub use crate::outcome::Returned;
    #[cfg(feature = "candle")]
    pub use crate::phases::{card_of, lost_events, refused, refusing};
    #[cfg(feature = "candle")]
    pub use crate::probe::card::InstalledCard;
    pub use crate::probe::recording::{DriverCall, record};
}
