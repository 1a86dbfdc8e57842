use memcheck_macros::mem_test;

#[mem_test(crate = "not a path")]
fn words() {}

#[mem_test(crate = 3)]
fn number() {}

fn main() {}
