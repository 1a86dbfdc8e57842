//! The workloads of the benchmark `overhead` on the system's allocator alone.

use std::alloc::System;

#[global_allocator]
static ALLOCATOR: System = System;

fn main() -> anyhow::Result<()> {
    memcheck_tests::overhead::serve(|| None)
}
