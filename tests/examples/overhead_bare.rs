//! The workloads of the benchmark `overhead` with the system allocator.

use std::alloc::System;

#[global_allocator]
static ALLOCATOR: System = System;

fn main() -> anyhow::Result<()> {
    memcheck_tests::overhead::serve(|| None)
}
