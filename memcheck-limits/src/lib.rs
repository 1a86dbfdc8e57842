//! The vocabulary that all crates share: the sizes, cards, devices, limits and laws that a memory test
//! may name, the machines that the simulated device can be, and the sources of CUDA kernels.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! `#[mem_test]` checks its options with these types while the compiler runs, and the ledger and the
//! simulated device need no other crate of memcheck. It must therefore stay small. `memcheck-core`
//! re-exports every module.
#![forbid(unsafe_code)]

pub mod bound;
pub mod capacity;
pub mod cards;
pub mod characters;
pub mod cuda_source;
pub mod device;
pub mod law;
pub mod limits;
pub mod living;
pub mod machine;
mod names;
pub mod quiet;
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
