use memcheck_macros::mem_test;

#[mem_test(max_growth = "64 parsecs")]
fn no_unit() {}

#[mem_test(max_growth = 64)]
fn no_text() {}

#[mem_test(max_peak_mb = -1.0)]
fn negative() {}

#[mem_test(max_peak_mb = "1 MiB")]
fn text_for_a_number() {}

#[mem_test(max_peak = "0.6 x other")]
fn relative() {}

fn main() {}
