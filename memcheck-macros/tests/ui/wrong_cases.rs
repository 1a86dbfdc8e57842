use memcheck_macros::mem_test;

#[mem_test(cases)]
fn no_parentheses(_trial: &mut u32) {}

#[mem_test(cases = [1, 8])]
fn no_name(_trial: &mut u32) {}

#[mem_test(cases())]
fn nothing(_trial: &mut u32) {}

#[mem_test(cases([1, 8]))]
fn no_name_inside(_trial: &mut u32) {}

#[mem_test(cases(batch))]
fn no_list(_trial: &mut u32) {}

#[mem_test(cases(batch = 8))]
fn a_value_for_a_list(_trial: &mut u32) {}

#[mem_test(cases(batch = []))]
fn an_empty_list(_trial: &mut u32) {}

#[mem_test(cases(batch = [1], dtype = [f32], batch = [8]))]
fn the_same_name(_trial: &mut u32) {}

#[mem_test(cases(batch = [1, 8]), cases(seq = [1, 8]))]
fn two_of_them(_trial: &mut u32) {}

#[mem_test(cases(batch = [1, 1 + 1, DType::F32, [8], 'c', 8usize, -x]))]
fn values_of_another_kind(_trial: &mut u32) {}

#[mem_test(cases(batch = [1, 8, 1]))]
fn the_same_value(_trial: &mut u32) {}

#[mem_test(cases(card = ["rtx 4090", "rtx-4090"]))]
fn the_same_test(_trial: &mut u32) {}

#[mem_test(cases(
    a = [0, 1, 2, 3, 4, 5, 6, 7],
    b = [0, 1, 2, 3, 4, 5, 6, 7],
    c = [0, 1, 2, 3, 4]
))]
fn too_many(_trial: &mut u32) {}

#[mem_test(cases(batch = [1, 8]))]
fn a_body_without_a_trial() {}

#[mem_test(cases(batch = [1, 8]))]
fn a_body_with_a_device(_device: &u32) {}

#[mem_test(cases(batch = []), leaks = 0)]
fn two_at_once(_trial: &mut u32) {}

fn main() {}
