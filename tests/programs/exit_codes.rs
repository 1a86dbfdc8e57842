//! Of `functional/exit_codes.rs`.

use memcheck_runtime::mem_test;

#[mem_test(baseline = false)]
fn passes() {}
