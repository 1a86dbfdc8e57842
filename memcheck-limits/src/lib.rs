//! The vocabulary of a request: the sizes, cards, devices, limits and laws that a memory test may
//! name.
//!
//! `#[mem_test]` checks its options with these types while the compiler runs. This crate is
//! therefore separate from `memcheck-core`: cargo must build it before any test, so it must stay
//! small. `memcheck-core` re-exports every module.
#![forbid(unsafe_code)]

pub mod bound;
pub mod capacity;
pub mod cards;
pub mod characters;
pub mod device;
pub mod law;
pub mod limits;
mod names;
pub mod search;
pub mod shape;
pub mod size;
pub mod space;
pub mod spelling;
pub mod sweep;
pub mod tolerance;
pub mod values;

/// The name of the static in which `#[mem_test]` describes a test. The static's closures call the
/// body, so their stack frames are on every call stack of the body.
pub const TEST: &str = "__MEM_TEST";
