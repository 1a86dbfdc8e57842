//! The workload of the benchmark `interception` with memcheck's probes in front
//! of the driver and its allocator, both armed by the first call of `usage`.

fn main() -> anyhow::Result<()> {
    memcheck_tests::interception::serve(|device| Some(memcheck_runtime::usage(device).allocated))
}
