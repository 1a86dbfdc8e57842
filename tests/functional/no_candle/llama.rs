//! A Llama of another version of candle, measured without its types.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Config, Llama};
use memcheck_runtime::{Trial, mem_test, usage_by_space};

const VOCABULARY: usize = 512;
const HIDDEN: usize = 64;
const INNER: usize = 128;
const LAYERS: usize = 2;
const KEYS: usize = 2 * 16;
const POSITIONS: usize = 512;

fn config() -> Config {
    Config {
        hidden_size: HIDDEN,
        intermediate_size: INNER,
        vocab_size: VOCABULARY,
        num_hidden_layers: LAYERS,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        max_position_embeddings: POSITIONS,
        ..Config::config_7b_v2(false)
    }
}

/// Bytes of the weights in f32.
fn weights() -> usize {
    let layer = 2 * HIDDEN * HIDDEN + 2 * HIDDEN * KEYS + 3 * HIDDEN * INNER + 2 * HIDDEN;
    4 * (2 * VOCABULARY * HIDDEN + LAYERS * layer + HIDDEN)
}

/// Bytes of the tables of positions, of the mask of a prompt, and of the keys and values of all
/// tokens.
fn cache(prompt: usize, tokens: usize) -> usize {
    POSITIONS * 16 * 4 + prompt * prompt + tokens * 2 * LAYERS * KEYS * 4
}

/// Live bytes of the device, as far as blocks of at least 1 KiB have them on the host.
fn live(device: &Device) -> usize {
    let space = if device.is_cuda() { "cuda:0" } else { "host" };
    usage_by_space()[space].allocated as usize
}

fn model(device: &Device) -> Result<(Llama, Cache)> {
    let model = Llama::load(VarBuilder::zeros(DType::F32, device), &config())?;
    Ok((model, Cache::new(true, DType::F32, &config(), device)?))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn prefill_and_decode(trial: &mut Trial) -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let before = usage_by_space().get("cuda:0").map_or(0, |usage| usage.allocated);
    assert_eq!(before, 0);
    let (model, mut of_set_up) = model(&device)?;
    let tables = POSITIONS * 16 * 4;
    let counts_all = device.is_cuda();
    if counts_all {
        assert_eq!(live(&device), weights() + tables);
    }
    let prompt = Tensor::zeros((1, 16), DType::U32, &device)?;
    let token = Tensor::zeros((1, 1), DType::U32, &device)?;
    model.forward(&prompt, 0, &mut of_set_up)?;
    for position in 16..24 {
        model.forward(&token, position, &mut of_set_up)?;
    }
    if counts_all {
        assert_eq!(live(&device), weights() + cache(16, 24) + 17 * 4);
    } else {
        // Norms and the tables of the cache have blocks below 1 KiB.
        let all = weights() + cache(16, 24) + 17 * 4;
        assert!((all - 4096..all + 1024).contains(&live(&device)), "{} {all}", live(&device));
    }
    drop(of_set_up);
    trial.iterate(|_| {
        let mut cache = Cache::new(true, DType::F32, &config(), &device)?;
        model.forward(&prompt, 0, &mut cache)?;
        model.forward(&token, 16, &mut cache)?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn keeps_its_cache(trial: &mut Trial) -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let (model, mut cache) = model(&device)?;
    let prompt = Tensor::zeros((1, 16), DType::U32, &device)?;
    model.forward(&prompt, 0, &mut cache)?;
    let token = Tensor::zeros((1, 1), DType::U32, &device)?;
    let mut position = 16;
    trial.iterate(|_| {
        model.forward(&token, position, &mut cache)?;
        position += 1;
        Ok(())
    })
}
