//! The workloads of the benchmark `overhead` under stats_alloc.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> anyhow::Result<()> {
    memcheck_tests::overhead::serve(|| {
        let stats = ALLOCATOR.stats();
        Some((stats.bytes_allocated - stats.bytes_deallocated) as u64)
    })
}
