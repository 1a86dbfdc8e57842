//! The part of memcheck that runs inside an allocation. It counts the block, and finds the call site
//! if a run must explain its figures.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! ```text
//! Rust's allocator   C heap   driver of a GPU
//!       host ─┐     c_heap ─┐     (memcheck-runtime) ─┐
//!             └─────────────┴──► ledger ◄─────────────┘
//!                                  │  └──► site: the number of the call stack and scope
//!                                  └─────► events: the stream that memcheck-runtime folds
//! ```
//!
//! This is a crate of its own so that it can be optimized when nothing else is. It takes seconds to
//! compile, and runs at every allocation of a test. Nothing here takes a lock, allocates memory or
//! formats text while it counts.

pub mod block;
pub mod c_heap;
pub mod events;
pub mod host;
pub mod intern;
pub mod scope;
pub mod site;

mod ledger;
mod mapping;
mod os;
mod prefetch;

pub use ledger::{
    CAPACITY, Census, Changes, CounterSnapshot, PeakWindow, RecordingMode, Taken, ThreadCounters,
    allocated, arm, begin_iteration, census, count_event_of_unknown_gpu, count_small, count_sum,
    discarded, each, each_unfreed, end_iteration, events_of_unknown_gpus, follow_tensors,
    forget_refusal, free_failed, freed, heap, is_armed, iteration, live_by_phase, lost_events,
    mode, prepare, put_back, refused, reset, reset_peak, reset_unused, restore_peak, set_phase,
    shaped, size_of, snapshot, space_of, sum, table, take_phase_peak, taken,
};

/// The folder in which this crate was compiled.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
