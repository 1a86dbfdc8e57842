use memcheck_macros::mem_test;

#[mem_test(phases)]
fn no_parentheses(_trial: &mut u32) {}

#[mem_test(phases())]
fn nothing(_trial: &mut u32) {}

#[mem_test(phases("decode"))]
fn no_name(_trial: &mut u32) {}

#[mem_test(phases(decode = "64 MiB"))]
fn another_sign(_trial: &mut u32) {}

#[mem_test(phases(decode <= 64))]
fn no_quotes(_trial: &mut u32) {}

#[mem_test(phases(decode <= "64 MiBi"))]
fn no_size(_trial: &mut u32) {}

#[mem_test(phases(decode <= "64 MiB", decode <= "32 MiB"))]
fn twice(_trial: &mut u32) {}

fn main() {}
