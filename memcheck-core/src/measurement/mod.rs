//! The record of a test, with its figures, its call stacks and the blocks that they hold.

pub mod attribution;
pub mod cargo_lock;
pub mod comparison;
pub mod driver;
pub mod fault_sweep;
pub mod figures;
pub mod phase;
pub mod placement;
pub mod process_memory;
pub mod record;
pub mod repeats;
pub mod soak;
pub mod stack;
pub(crate) mod traffic;
pub mod unified;
pub mod unknown_reads;
pub mod unsimulated;
pub mod validity;
