//! The pure core of memcheck: the record of a measured test, and the verdict on it.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! Data flows one way through these modules. Except for `os`, `input` and `judgement::snapshot`, they
//! do not use a file, and none reads a clock, the environment or a terminal:
//!
//! ```text
//! os           differences between systems
//! input        files that another program can have written
//! growth       lifetimes of blocks -> does memory grow?
//! measurement  the record of one run
//! judgement    (record, baseline, limits) -> verdict with findings
//! request      configuration and variables
//! wire         messages between the command and the test process
//! runs         the runs of a test -> the next run, the verdict; limits that relate tests
//! presentation findings and profiles as text
//! ```
//!
//! Each module uses only modules above it.
//!
//! The test process uses this crate through `memcheck-runtime`. The command, `cargo-memcheck`, uses
//! it directly, so that it does not have to compile candle.
#![forbid(unsafe_code)]

pub use memcheck_limits::{
    bound, capacity, cards, characters, cuda_source, device, law, limits, machine, quiet, search,
    shape, size, space, spelling, sweep, tolerance, values, with_limits,
};

/// The folder of this crate's sources. It identifies the crate's frames in a call stack.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

pub mod growth;
pub mod input;
pub mod judgement;
pub mod measurement;
pub mod os;
pub mod presentation;
pub mod request;
pub mod runs;
pub mod wire;
