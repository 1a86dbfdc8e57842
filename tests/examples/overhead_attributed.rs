//! The workloads of the benchmark `overhead` in a run with attribution, in which every block has a
//! call stack and a scope.

use candle_core::Device;

fn main() -> anyhow::Result<()> {
    memcheck_runtime::__private::follow()?;
    memcheck_tests::overhead::serve(|| Some(memcheck_runtime::usage(&Device::Cpu).allocated))
}
