//! Of `functional/configuration.rs`.

use memcheck_runtime::mem_test;

#[mem_test(iterations = 3, baseline = false)]
fn with_attribute() {}

#[mem_test(baseline = false)]
fn without_attribute() {}
