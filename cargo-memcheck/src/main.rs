//! cargo memcheck
fn main() {}
