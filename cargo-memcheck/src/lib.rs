//! `cargo memcheck`: memory regression tests for candle, seen from outside the test process. The
//! folders follow the pipeline from the command line to the results. The test process reaches the
//! verdict, except for a record whose call stacks have no names; the command trusts it only if its
//! record is complete.
//!
//! This is a program. Its code is a library only so that the fuzz targets can call it.
#![deny(unsafe_code)]

mod commands;

use std::process::ExitCode;

mod baselines;
mod build;
mod comparison;
mod discovery;
mod execution;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod invocation;
#[cfg(test)]
mod large_inputs;
mod presentation;
mod system;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    if system::process::run_if_named() {
        return ExitCode::SUCCESS;
    }
    let work = || commands::main(std::env::args_os().collect());
    ExitCode::from(system::process::with_whole_stack(work))
}
