//! The memory tests that the functional tests run, one module for each of their files: programs that
//! leak, are clean, or meet a fault. They have no baselines.

mod c_heap;
mod cases;
mod forks;
mod further_runs;
mod growth;
mod hardware;
mod retained;
mod soak;
mod user_code;
mod values;
