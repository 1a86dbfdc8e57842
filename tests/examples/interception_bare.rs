//! The workload of the benchmark `interception` without memcheck. The package must be built with
//! `--no-default-features`, so that the program does not link memcheck.

fn main() -> anyhow::Result<()> {
    memcheck_tests::interception::serve(|_| None)
}
