//! Several runs: further runs of one test, the output and the end of a process, limits that relate
//! tests.

pub mod bisect;
pub mod capture;
pub mod compare;
pub mod explain;
pub mod history;
pub mod process_end;
pub mod relations;
