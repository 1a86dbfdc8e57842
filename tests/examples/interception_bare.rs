//! The workload of the benchmark `interception`, without memcheck: as long as
//! nothing of it is linked, as in a build with `--no-default-features`.

fn main() -> anyhow::Result<()> {
    memcheck_tests::interception::serve(|_| None)
}
