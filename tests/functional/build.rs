//! Sets how many functional tests run at the same time. Most of them wait for a process, so that
//! there should be more of them than processors. Cargo passes the variables of a build script to
//! the tests that it runs.

use std::thread::available_parallelism;

const THREADS: &str = "RUST_TEST_THREADS";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={THREADS}");
    if std::env::var_os(THREADS).is_none() {
        let processors = available_parallelism().map_or(2, usize::from);
        println!("cargo::rustc-env={THREADS}={}", processors + 2);
    }
}
