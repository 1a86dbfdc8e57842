//! `cargo memcheck`: memory regression tests for candle, seen from outside the test process.
//!
//! The folders follow the pipeline: the command line (`cli`) and the resolved options (`options`), the workspace, the toolchain, the build,
//! the tests in its binaries, a child process for each test, and the presentation of the results, at once or from stored ones (`results`).
//! The test process reaches the verdict, except for a record whose call stacks have no names; the command trusts it only if its record is
//! complete.
#![forbid(unsafe_code)]

mod across;
mod archive;
mod binary;
mod bookkeeping;
mod compile;
mod cli;
mod commands;
mod config;
mod devices;
mod discover;
mod error;
mod estimator;
mod fit;
mod fresh;
mod generated;
mod gpus;
mod launcher;
mod legs;
mod libraries;
mod matching;
mod note;
mod options;
mod present;
mod presenter;
mod process;
mod results;
mod run;
mod schedule;
mod select;
mod session;
mod snapshots;
mod suggestion;
mod talk;
mod tally;
mod task;
mod toolchain;
mod values;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(commands::main(std::env::args_os().collect()))
}
