//! Several runs: further runs of one test, the end of a process, limits that relate tests.

pub mod explain;
pub mod process;
pub mod relations;
