//! A test of a crate whose dependencies always switch candle's `cuda` on.

use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false, max_growth = "0 B")]
fn clean(trial: &mut Trial) -> candle_core::Result<()> {
    trial.iterate(|_| on_the_gpu::zeros(trial.device()).map(drop))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn leaky(trial: &mut Trial) -> candle_core::Result<()> {
    let mut kept = Vec::with_capacity(2000);
    trial.iterate(|_| Ok(kept.push(on_the_gpu::zeros(trial.device())?)))
}
