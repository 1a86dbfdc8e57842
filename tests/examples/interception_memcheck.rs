//! The workload of the benchmark `interception` with memcheck: the probes in front of the driver,
//! and the allocator. The first call of `usage` arms both.

fn main() -> anyhow::Result<()> {
    memcheck_tests::interception::serve(|device| Some(memcheck_runtime::usage(device).allocated))
}
