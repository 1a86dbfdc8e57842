//! Of `functional/report_reader.rs`: attention of one head, whose peak the functional test changes, and a step
//! that keeps its scores if the functional test asks for it.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth = "0 B")]
fn self_attention(device: &Device) -> Result<()> {
    let query = Tensor::ones((128, 32), DType::F32, device)?;
    let scores = query.matmul(&query.t()?)?;
    if std::env::var_os("SCORES_HELD_TWICE").is_some() {
        let _before_softmax = scores.copy()?; // line: copy
        return scores.matmul(&query).map(drop);
    }
    scores.matmul(&query).map(drop)
}

#[mem_test(max_growth = "0 B")]
fn decoder_step(trial: &mut Trial) -> Result<()> {
    let query = Tensor::ones((128, 32), DType::F32, trial.device())?;
    let keeps = std::env::var_os("SCORES_KEPT").is_some();
    let mut kept = Vec::with_capacity(16);
    trial.iterate(|_| {
        let scores = query.matmul(&query.t()?)?;
        if keeps {
            kept.push(scores);
        }
        Ok(())
    })
}
