//! `cargo memcheck`: memory regression tests for candle, seen from outside the test process. The
//! folders follow the pipeline from the command line to the results. The test process reaches the
//! verdict, except for a record whose call stacks have no names; the command trusts it only if its
//! record is complete.
//!
//! On a system that memcheck does not measure, `elsewhere` is the command.
//!
//! This is a program. Its code is a library only so that the fuzz targets can call it: any version
//! can change it. A package depends on `memcheck-runtime` instead.
#![deny(unsafe_code)]
// A build that leaves parts out still has what only these parts use of the others.
#![cfg_attr(
    not(all(
        feature = "archives",
        feature = "comparison",
        feature = "estimates",
        feature = "exports"
    )),
    allow(unused, reason = "the parts that are left out use it")
)]

#[cfg(all(target_os = "linux", not(memcheck_portable)))]
mod commands;

use std::process::ExitCode;

#[cfg(all(target_os = "linux", not(memcheck_portable)))]
mod baselines;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
mod build;
#[cfg(all(target_os = "linux", not(memcheck_portable), feature = "comparison"))]
mod comparison;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
mod discovery;
#[cfg(not(all(target_os = "linux", not(memcheck_portable))))]
mod elsewhere;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
mod execution;
#[cfg(all(target_os = "linux", not(memcheck_portable), any(test, fuzzing)))]
pub mod fuzzing;
#[cfg_attr(
    not(all(target_os = "linux", not(memcheck_portable))),
    allow(dead_code, unused_imports, reason = "`elsewhere` needs a part of it")
)]
mod invocation;
#[cfg(all(target_os = "linux", not(memcheck_portable), test))]
mod large_inputs;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
mod presentation;
#[cfg_attr(
    not(all(target_os = "linux", not(memcheck_portable))),
    allow(dead_code, unused_imports, unused_macros, reason = "`elsewhere` needs a part of it")
)]
mod system;

/// Runs the command with the arguments of this process.
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub fn main() -> ExitCode {
    if system::process::run_if_supervisor() {
        return ExitCode::SUCCESS;
    }
    let work = || commands::main(std::env::args_os().collect());
    ExitCode::from(system::process::with_whole_stack(work))
}

/// Runs the command with the arguments of this process.
#[cfg(not(all(target_os = "linux", not(memcheck_portable))))]
pub fn main() -> ExitCode {
    ExitCode::from(elsewhere::main(std::env::args_os().collect()))
}
