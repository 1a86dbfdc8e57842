//! Several runs: further runs of one test, the end of a process, and limits that relate tests to each other.

pub mod explain;
pub mod process;
pub mod relations;
