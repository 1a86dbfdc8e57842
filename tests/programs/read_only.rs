//! Of `functional/read_only.rs`: a test with a baseline.

use memcheck_runtime::mem_test;

/// Allocates as many bytes as the functional test wants.
#[mem_test]
fn allocates() {
    let bytes = std::env::var("ALLOCATED_BYTES").ok().and_then(|bytes| bytes.parse().ok());
    drop(std::hint::black_box(vec![1_u8; bytes.expect("the functional test sets it")]));
}
