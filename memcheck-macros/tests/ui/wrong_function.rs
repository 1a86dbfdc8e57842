use memcheck_macros::mem_test;

#[mem_test]
fn two_arguments(_a: &mut u32, _b: u32) {}

#[mem_test]
fn by_value(_a: u32) {}

#[mem_test]
fn generic<T>() {}

#[mem_test]
#[test]
fn already_a_test() {}

#[mem_test]
struct NotAFunction;

fn main() {}
