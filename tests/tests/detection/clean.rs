//! A clean program at random, by its seed, and the same with a leak in it.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::scenarios::clean;

/// `MEMCHECK_TESTS_SEED`, or 0.
fn seed() -> anyhow::Result<u64> {
    Ok(match std::env::var("MEMCHECK_TESTS_SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => 0,
    })
}

/// 24 iterations are what seed 0 is meant to have (`clean::iterations`); another
/// is given its own in `MEMCHECK_ITERATIONS`.
#[mem_test(baseline = false, max_growth = "0 B", iterations = 24)]
fn clean_program(trial: &mut Trial) -> anyhow::Result<()> {
    clean::clean_program(seed()?, trial)
}

#[mem_test(baseline = false, max_growth = "0 B", iterations = 24)]
#[ignore = "leaks on purpose"]
fn planted_program(trial: &mut Trial) -> anyhow::Result<()> {
    clean::planted_program(seed()?, trial)
}

/// Tells the bench where this executable is, which runs programs by
/// their seeds some hundred times without the command.
#[mem_test(baseline = false)]
#[ignore = "measures nothing"]
fn executable(trial: &mut Trial) -> anyhow::Result<()> {
    trial.mark(std::env::current_exe()?.display().to_string());
    Ok(())
}
