//! Of `functional/unwritten.rs`.

use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false)]
fn first() {}

#[mem_test(baseline = false)]
fn second() {}

#[mem_test(
    baseline = false,
    iterations = 1,
    warmup = 0,
    cases(number = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
)]
fn leaves_a_file(trial: &mut Trial) -> candle_core::Result<()> {
    let number: u32 = trial.case("number")?;
    std::fs::write(crate::folder().join(number.to_string()), "")?;
    Ok(())
}
