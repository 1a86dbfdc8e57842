//! The memory tests that the functional tests run, one module for each of their files: programs that
//! leak, are clean, or meet a fault. They have no baselines.

mod bad_binaries;
mod configuration;
mod exit_codes;
mod fit;
mod hardware;
mod hostile;
mod live;
mod profile;
mod report_page;
mod reports;
mod runner;
mod terminal;
mod unwritten;
