//! The workloads of the benchmark `overhead` under dhat with its heap profiler.
//!
//! dhat's testing mode does the same work for each block, but writes no file at the end.

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() -> anyhow::Result<()> {
    let _profiler = dhat::Profiler::builder().testing().build();
    memcheck_tests::overhead::serve(|| Some(dhat::HeapStats::get().curr_bytes as u64))
}
