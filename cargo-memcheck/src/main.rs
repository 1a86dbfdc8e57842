//! `cargo memcheck`: memory regression tests for candle, from the outside.
//!
//! The folders are the pipeline: what was typed (`cli`) and what is meant
//! (`options`), the workspace, the toolchain, the build, the tests that its
//! binaries carry, a child process for each of them, and what people and
//! machines are told, now or from the results that were kept (`results`). The verdict is reached in the test process; here it is
//! only believed when its record is complete.
#![forbid(unsafe_code)]

mod across;
mod archive;
mod binary;
mod bookkeeping;
mod build;
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
mod talk;
mod tally;
mod task;
mod toolchain;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(commands::main(std::env::args_os().collect()))
}
