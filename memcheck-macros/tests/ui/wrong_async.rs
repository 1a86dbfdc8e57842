use memcheck_macros::mem_test;

#[mem_test]
async fn no_function_that_runs_it(_trial: &mut u32) {}

#[mem_test(block_on = pollster::block_on)]
fn not_async(_trial: &mut u32) {}

#[mem_test(block_on = 3)]
async fn a_number(_trial: &mut u32) {}

#[mem_test(block_on)]
async fn no_path(_trial: &mut u32) {}

#[mem_test]
#[tokio::test]
async fn a_test_of_tokio() {}

#[mem_test]
#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_tokio_with_arguments(_trial: &mut u32) {}

#[mem_test]
#[rstest]
fn a_test_of_rstest(#[case] _rows: u32, #[case] _columns: u32) {}

fn main() {}
