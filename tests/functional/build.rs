//! The functional tests wait for processes most of the time, so that more of them than processors
//! should run. Cargo passes the variables of a build script to the tests that it runs.

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
