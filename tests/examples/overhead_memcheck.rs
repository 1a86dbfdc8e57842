//! The workloads of the benchmark `overhead` under memcheck's allocator, which counts as it
//! does in a test on the host: small blocks too.
//!
//! `memcheck_runtime` installs its allocator by being linked.

use candle_core::Device;

fn main() -> anyhow::Result<()> {
    memcheck_runtime::__private::count()?;
    memcheck_tests::overhead::serve(|| Some(memcheck_runtime::usage(&Device::Cpu).allocated))
}
