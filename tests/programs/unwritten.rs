//! Of `functional/unwritten.rs`.

use memcheck_runtime::mem_test;

#[mem_test(baseline = false)]
fn first() {}

#[mem_test(baseline = false)]
fn second() {}
