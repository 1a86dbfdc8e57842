//! Llama: prefill and decoding with a key-value cache.

use candle_core::DType;
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::llama::{Llama, cache_bytes};

use crate::assert_allocated;

#[mem_test(max_growth = "0 B")]
fn prefill_and_decode(trial: &mut Trial) -> anyhow::Result<()> {
    let llama = Llama::tiny(trial.device(), DType::F32)?;
    assert_allocated(trial, llama.weight_bytes());
    let prompt = llama.prompt(2, 16)?;
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, 8)?;
        Ok(())
    })
}

/// Llama-2-7B in f16 on a simulated device.
#[mem_test(device = "cuda", max_growth = "0 B", warmup = 1, iterations = 2)]
fn llama2_7b_prefill_2048_decode_16(trial: &mut Trial) -> anyhow::Result<()> {
    let llama = Llama::llama2_7b(trial.device())?;
    // 6,738,415,616 parameters of two bytes.
    assert_allocated(trial, 13_476_831_232);
    let prompt = llama.prompt(1, 2048)?;
    // Prompt: 2048 ids of four bytes.
    assert_allocated(trial, 13_476_831_232 + 2048 * 4);
    // Keys and values of 2048 tokens: 2 * 32 layers * 32 heads * 128 * 2 B each, 1,073,741,824 in
    // all. The mask is 2048 x 2048 bytes. The rotary tables are 4096 positions * 128 * 2 B.
    let cache = cache_bytes(llama.config(), 1, DType::F16, 2048, 2048);
    assert_eq!(cache, 1_073_741_824 + 2048 * 2048 + 1_048_576);
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, 16)?;
        Ok(())
    })
}
