//! How memory grows with sizes. `scaling` bounds the law of each figure over all cases, and each
//! family has a baseline with its laws. The tests assert the closed formula of each law case by
//! case. `functional::across` compares the baselines with the formulas.

use candle_core::DType;
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::bert::Bert;
use memcheck_tests::llama::Llama;

use crate::assert_allocated;

/// The scores of every head are `batch * seq²`, so the law must have that term. The law is that of
/// `Bert::forward_peak_bytes` with h = 768 and a = 12:
/// `435,566,592 + 96 + b s (4 (8 h + 2 a + 1) + 12) + 20 a b s²`.
#[mem_test(
    cases(batch = [1, 2, 4], seq = [128, 256, 384, 512]),
    scaling(peak_allocated <= "batch*seq^2", setup <= "batch*seq", growth <= "1"),
    device = "cuda",
    fits = "rtx4090",
    max_growth = "0 B",
    warmup = 1,
    iterations = 2
)]
fn bert_forward(trial: &mut Trial) -> anyhow::Result<()> {
    let (batch, seq): (usize, usize) = (trial.case("batch")?, trial.case("seq")?);
    let bert = Bert::base(trial.device(), DType::F32)?;
    assert_allocated(trial, bert.weight_bytes());
    let inputs = bert.inputs(batch, seq)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        anyhow::Ok(())
    })?;
    assert_eq!(trial.usage().peak_allocated, bert.forward_peak_bytes(batch, seq) as u64);
    Ok(())
}

/// A request of 16 tokens that generates `tokens` more. The cache, and the copy of it that each
/// step makes, must grow linearly with the tokens.
#[mem_test(
    cases(tokens = [32, 64, 128, 256]),
    scaling(peak_allocated <= "tokens", growth <= "1", allocations <= "tokens"),
    device = "cuda",
    max_growth = "0 B",
    warmup = 1,
    iterations = 2
)]
fn llama_decode(trial: &mut Trial) -> anyhow::Result<()> {
    let tokens: usize = trial.case("tokens")?;
    let llama = Llama::tiny(trial.device(), DType::F32)?;
    assert_allocated(trial, llama.weight_bytes());
    let prompt = llama.prompt(2, 16)?;
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, tokens)?;
        anyhow::Ok(())
    })?;
    // With 32 tokens another moment of the request has the peak, so the law holds from 64 tokens
    // on.
    if tokens >= 64 {
        let peak = llama.decode_peak_bytes(2, 16, tokens);
        assert_eq!(trial.usage().peak_allocated, peak as u64);
    }
    Ok(())
}

/// A prompt without decoding: keys and values are `batch * seq`, scores `batch * seq²`, and the
/// mask `seq²`.
#[mem_test(
    cases(batch = [1, 2, 4], seq = [64, 128, 256, 512]),
    scaling(peak_allocated <= "batch*seq^2", growth <= "1"),
    device = "cuda",
    max_growth = "0 B",
    warmup = 1,
    iterations = 2
)]
fn llama_prefill(trial: &mut Trial) -> anyhow::Result<()> {
    let (batch, seq): (usize, usize) = (trial.case("batch")?, trial.case("seq")?);
    let llama = Llama::tiny(trial.device(), DType::F32)?;
    let prompt = llama.prompt(batch, seq)?;
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, 0)?;
        anyhow::Ok(())
    })?;
    assert_eq!(trial.usage().peak_allocated, llama.prefill_peak_bytes(batch, seq) as u64);
    Ok(())
}

/// The limit is about half the peak of the same pass in f32. Weights and activations take half the
/// bytes, but inputs and the strides of a kernel do not.
#[mem_test(device = "cuda", max_peak = "0.5001 x bert::base_forward_b8_s128")]
fn bert_forward_f16(trial: &mut Trial) -> anyhow::Result<()> {
    let bert = Bert::base(trial.device(), DType::F16)?;
    let inputs = bert.inputs(8, 128)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        Ok(())
    })
}
