//! The workloads of the benchmark `overhead` under memcheck's allocator, armed.
//!
//! `memcheck_runtime` installs its allocator by being linked; the first call of
//! `usage` arms it.

use candle_core::Device;

fn main() -> anyhow::Result<()> {
    memcheck_tests::overhead::serve(|| Some(memcheck_runtime::usage(&Device::Cpu).allocated))
}
