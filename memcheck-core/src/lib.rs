//! The pure core of memcheck: the record of a measured test, and the verdict on it.
//!
//! Data flows one way through these modules. They do not read a clock, a file, the environment or a
//! terminal:
//!
//! ```text
//! limits <- config           what is asked for, and by whom
//! record <- survivors        what was measured
//! baseline                   what was accepted before
//! (record, baseline, limits) -> verdict -> findings
//! several runs of a test -> explain, repeats -> one record
//! several records -> across -> laws, findings
//! ```
//!
//! The test process uses this crate through `memcheck-runtime`. The command, `cargo-memcheck`, uses
//! it directly, so that it does not have to compile candle.
#![forbid(unsafe_code)]

pub use memcheck_limits::{
    bound, capacity, cards, device, law, limits, search, shape, size, space, tolerance, with_limits,
};

/// The folder of this crate's sources. It identifies the crate's frames in a call stack.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

pub mod growth;
pub mod judgement;
pub mod measurement;
pub mod presentation;
pub mod request;
pub mod runs;
pub mod wire;
