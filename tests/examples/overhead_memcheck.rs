//! The workloads of the benchmark `overhead` under memcheck's allocator. It counts as in a test on
//! the host, small blocks included.
//!
//! Linking `memcheck_runtime` installs its allocator.

use candle_core::Device;

fn main() -> anyhow::Result<()> {
    memcheck_runtime::__private::count()?;
    memcheck_tests::overhead::serve(|| Some(memcheck_runtime::usage(&Device::Cpu).allocated))
}
