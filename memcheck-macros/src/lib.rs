//! `#[mem_test]`
