//! A random clean program, given by its seed, and the same program with a planted leak.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::scenarios::clean;

/// `DETECTION_SEED`, or 0.
fn seed() -> anyhow::Result<u64> {
    Ok(match std::env::var("DETECTION_SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => 0,
    })
}

/// Seed 0 must run with 24 iterations (`clean::iterations`). For other seeds the benchmark sets the
/// number of iterations in the job.
#[mem_test(baseline = false, max_growth = "0 B", iterations = 24)]
fn clean_program(trial: &mut Trial) -> anyhow::Result<()> {
    clean::clean_program(seed()?, trial)
}

#[mem_test(baseline = false, max_growth = "0 B", iterations = 24)]
#[ignore = "leaks on purpose"]
fn planted_program(trial: &mut Trial) -> anyhow::Result<()> {
    clean::planted_program(seed()?, trial)
}

/// Reports the path of this executable to the benchmark, which starts it some hundred times with
/// other seeds and without the command.
#[mem_test(baseline = false)]
#[ignore = "measures nothing"]
fn executable(trial: &mut Trial) -> anyhow::Result<()> {
    trial.mark(std::env::current_exe()?.display().to_string());
    Ok(())
}
