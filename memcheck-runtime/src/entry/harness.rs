//! The answers of a memory test to a plain test harness that do not need a measurement.

use std::fmt::Display;

use memcheck_core::device::Request;

use crate::description::Description;

/// Returns the value of a setting, or fails the test with the error.
pub(super) fn or_fail<T, E: Display>(read: Result<T, E>) -> T {
    read.unwrap_or_else(|error| panic!("{error}"))
}

/// Reports that this harness has no device for the test.
pub(super) fn not_run(description: &Description, device: &Request) {
    println!("memcheck: not run, it needs another device than `{device}`: use `cargo memcheck`");
    if let Some(expected) = description.should_panic {
        panic!("not run on `{device}`; its expected panic message: {expected}");
    }
}
