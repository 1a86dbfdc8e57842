//! A training step in f32 and in both half types. The code is the same, and the peaks must equal
//! the formula.

use candle_core::DType;
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::mixed_precision::{LossScaler, Trainer, step_peak_bytes};

#[mem_test(cases(dtype = [f32, bf16, f16]), device = "cuda", max_growth = "0 B")]
fn step(trial: &mut Trial) -> anyhow::Result<()> {
    let dtype: DType = trial.case("dtype")?;
    let mut trainer = Trainer::new(dtype, LossScaler::new(1024.0, 8), trial.device())?;
    trial.reset_peak();
    trial.iterate(|_| {
        trainer.step()?;
        anyhow::Ok(())
    })?;
    assert_eq!(trial.usage().peak_allocated, step_peak_bytes(dtype) as u64);
    Ok(())
}
