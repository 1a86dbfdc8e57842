//! The workloads of the benchmark `overhead` under memcheck's allocator, with the C heap counted
//! too.

use candle_core::Device;

fn main() -> anyhow::Result<()> {
    memcheck_runtime::__private::count_c_heap()?;
    memcheck_tests::overhead::serve(|| Some(memcheck_runtime::usage(&Device::Cpu).allocated))
}
