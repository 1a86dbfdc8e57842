use memcheck_macros::mem_test;

#[mem_test(iterations = 1, iterations = 2)]
fn the_same_option() {}

#[mem_test(max_peak = "1 KiB", max_peak_mb = 1.0)]
fn both_spellings() {}

#[mem_test(iterations)]
fn no_value() {}

fn main() {}
