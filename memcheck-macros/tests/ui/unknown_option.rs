use memcheck_macros::mem_test;

#[mem_test(max_grwth = "1 KiB")]
fn misspelt() {}

#[mem_test(iterations = 3, leaks = 0, warmup = 1, retries = 2)]
fn two_at_once() {}

fn main() {}
