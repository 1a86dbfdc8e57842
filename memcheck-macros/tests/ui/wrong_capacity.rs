use memcheck_macros::mem_test;

#[mem_test(fits = "rtx4091")]
fn misspelt_card() {}

#[mem_test(fits = "a100")]
fn half_a_card() {}

#[mem_test(fits = "a large one")]
fn neither() {}

#[mem_test(fits = "0 GiB")]
fn nothing_fits() {}

#[mem_test(fits = 24)]
fn no_text() {}

#[mem_test(max_reserved_growth = "64 parsecs", max_reserved_growth_mb = -1.0)]
fn no_size() {}

fn main() {}
