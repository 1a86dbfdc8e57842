//! The workloads of the benchmark `overhead` under peak_alloc.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() -> anyhow::Result<()> {
    memcheck_tests::overhead::serve(|| Some(ALLOCATOR.current_usage() as u64))
}
