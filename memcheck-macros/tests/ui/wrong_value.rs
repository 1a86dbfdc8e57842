use memcheck_macros::mem_test;

#[mem_test(iterations = 0)]
fn nothing_measured() {}

#[mem_test(warmup = "two")]
fn not_a_number() {}

#[mem_test(tolerance = "two percent")]
fn not_a_tolerance() {}

#[mem_test(device = "gpu")]
fn not_a_device() {}

#[mem_test(baseline = "no")]
fn not_a_boolean() {}

#[mem_test(timeout = "0s")]
fn no_time() {}

#[mem_test(values = "some", strict_values = "yes")]
fn no_contents() {}

#[mem_test(values = "0 B")]
fn nothing_is_kept() {}

#[mem_test(values = 256)]
fn not_a_text() {}

fn main() {}
