use memcheck_macros::mem_test;

#[mem_test(iterations = 5000000000)]
fn iterations() {}

#[mem_test(warmup = 4294967296)]
fn warmup() {}

#[mem_test(max_allocations = 18446744073709551616)]
fn allocations() {}

fn main() {}
