//! The conductor of a test. It asks which run is needed next, has it started, names its call stacks,
//! and, once no run is left, judges all of them together and writes the pending snapshot.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! ```text
//! process (of the caller) ──measurement──> names ──run──> MeasuredTest ──judge──> snapshots
//!          ^                                                  │ next
//!          └──────────────────── plan ────────────────────────┘
//! ```
//!
//! `cargo memcheck` and the harness of a plain `cargo test` both call it, and differ in how they
//! start a process. What is decided is decided by the pure functions of
//! [`memcheck_core::runs`].
#![deny(unsafe_code)]

mod conductor;
pub mod names;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the calls of the system that end processes")]
mod os;
pub mod snapshots;
#[cfg(target_os = "linux")]
pub mod supervisor;
pub mod symbols;

pub use conductor::{Conductor, Place, run_of};
