//! Several runs: further runs of one test, the output and the end of a process and of its
//! descendants, limits that relate tests.

pub mod capture;
pub mod descendants;
pub mod explain;
pub mod process_end;
pub mod relations;
