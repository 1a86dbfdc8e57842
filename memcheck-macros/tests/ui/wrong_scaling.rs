use memcheck_macros::mem_test;

#[mem_test(cases(seq = [1, 2, 3]), scaling)]
fn no_parentheses(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling())]
fn nothing(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling("seq"))]
fn no_figure(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(peak <= "seq"))]
fn an_unknown_figure(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(reserved <= "seq"))]
fn a_figure_of_the_driver(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(peak_allocated = "seq"))]
fn another_sign(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(peak_allocated <= seq))]
fn no_quotes(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(peak_allocated <= "seq log seq"))]
fn no_order(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(growth <= "1", growth <= "seq"))]
fn twice(_trial: &mut u32) {}

#[mem_test(scaling(growth <= "1"))]
fn no_cases(_trial: &mut u32) {}

#[mem_test(cases(dtype = [f32, bf16, f16], batch = [8]), scaling(growth <= "1"))]
fn no_sizes(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3]), scaling(peak_allocated <= "batch*seq"))]
fn an_unknown_case(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2, 3], dtype = [f32, f16, bf16]), scaling(peak_allocated <= "dtype"))]
fn a_case_without_numbers(_trial: &mut u32) {}

#[mem_test(cases(seq = [1, 2], batch = [8]), scaling(peak_allocated <= "batch*seq"))]
fn one_value(_trial: &mut u32) {}

fn main() {}
