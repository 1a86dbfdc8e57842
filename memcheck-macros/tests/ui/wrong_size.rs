use memcheck_macros::mem_test;

#[mem_test(max_growth = "64 parsecs")]
fn no_unit() {}

#[mem_test(max_growth = 64)]
fn no_text() {}

#[mem_test(max_peak_mb = -1.0)]
fn negative() {}

#[mem_test(max_peak_mb = "1 MiB")]
fn text_for_a_number() {}

#[mem_test(max_growth = "0.6 x other")]
fn a_share_of_growth() {}

#[mem_test(max_peak = "60% x other")]
fn a_share_in_percent() {}

#[mem_test(max_peak = "0.6 x other test")]
fn a_share_of_no_path() {}

#[mem_test(max_peak = "0.6 other")]
fn neither_size_nor_share() {}

fn main() {}
