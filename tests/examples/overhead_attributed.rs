//! The workloads of the benchmark `overhead` in a run with attribution: every
//! block with its call stack and scope.

use candle_core::Device;

fn main() -> anyhow::Result<()> {
    memcheck_runtime::__private::follow()?;
    memcheck_tests::overhead::serve(|| Some(memcheck_runtime::usage(&Device::Cpu).allocated))
}
