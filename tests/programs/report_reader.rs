//! Of `functional/report_reader.rs`: attention of one head, whose peak the functional test changes.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::mem_test;

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
