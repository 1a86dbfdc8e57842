//! The vocabulary of a request: the sizes, cards, devices, limits and laws that a
//! memory test may name.
//!
//! `#[mem_test]` checks its options with these types while the compiler runs, so
//! this crate is separate from `memcheck-core`: the compiler builds it before any
//! test, and it must stay small. `memcheck-core` exports every module again.
#![forbid(unsafe_code)]

pub mod bound;
pub mod capacity;
pub mod cards;
pub mod device;
pub mod law;
pub mod limits;
mod names;
pub mod search;
pub mod shape;
pub mod size;
pub mod space;
pub mod tolerance;

/// The static that `#[mem_test]` describes a test with. Its closures call the
/// body, so their frames are on every call stack of the body.
pub const TEST: &str = "__MEM_TEST";
