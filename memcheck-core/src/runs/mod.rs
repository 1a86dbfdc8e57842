//! Several runs: the runs of one test and what they show together, the output and the end of a
//! process, limits that relate tests.

pub mod capture;
pub mod measured;
mod merge;
mod next;
pub mod plan;
pub mod process_end;
pub mod relations;
pub mod report;
mod view;
