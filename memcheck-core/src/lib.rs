//! The pure core of memcheck: what is measured, and what is made of it.
//!
//! Data flows one way through these modules, and nothing in them reads a
//! clock, a file, the environment or a terminal:
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
//! Both sides of the wire use this crate: the test process (through
//! `memcheck-runtime`) and the command (`cargo-memcheck`), which therefore
//! compiles no candle.
#![forbid(unsafe_code)]

pub use memcheck_limits::{
    bound, capacity, cards, device, law, limits, search, shape, size, space, tolerance, with_limits,
};

/// Where this crate is compiled: its own frames in a call stack are told by it.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

pub mod across;
pub mod attribution;
pub mod baseline;
pub mod blame;
pub mod comparison;
pub mod config;
pub mod diagnosis;
pub mod digest;
pub mod driver;
pub mod estimate;
pub mod exit;
pub mod explain;
pub mod fault;
pub mod figures;
pub mod finding;
pub mod lifetimes;
pub mod lines;
pub mod location;
pub mod lock;
pub mod machine;
pub mod placement;
pub mod process;
pub mod profile;
pub mod protocol;
pub mod quiet;
pub mod record;
pub mod repeats;
pub mod stack;
pub mod survivors;
pub mod variables;
pub mod verdict;
