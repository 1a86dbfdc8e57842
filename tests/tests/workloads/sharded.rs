//! Llama over several devices, by a device map.

use candle_core::{DType, Device};
use candle_transformers::models::llama::Config;
use memcheck_runtime::{Trial, mem_test, usage};
use memcheck_tests::llama::{parameters, tiny_config};
use memcheck_tests::sharded::{Placement, ShardedLlama};

/// Runs the same workload as `llama::prefill_and_decode`, which uses candle's own model. A
/// functional test compares the figures of both.
#[mem_test(max_growth = "0 B")]
fn on_one_device(trial: &mut Trial) -> anyhow::Result<()> {
    let placement = Placement::one(trial.device());
    let llama = ShardedLlama::new(tiny_config(), DType::F32, placement)?;
    let prompt = llama.prompt(2, 16)?;
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, 8)?;
        Ok(())
    })
}

/// Six layers, distributed evenly over the devices.
#[mem_test(device = "cuda", cases(gpus = [2, 3]), max_growth = "0 B")]
#[ignore = "needs several GPUs: --device sim:3xh200 --run-ignored all"]
fn evenly_over(trial: &mut Trial) -> anyhow::Result<()> {
    let gpus: usize = trial.case("gpus")?;
    let devices: Vec<Device> = trial.devices()?[..gpus].to_vec();
    let config = Config { num_hidden_layers: 6, ..tiny_config() };
    let without_layers = Config { num_hidden_layers: 0, ..tiny_config() };
    let placement = Placement::even(6, &devices);
    let llama = ShardedLlama::new(config.clone(), DType::F32, placement)?;
    // A sixth of the parameters of all six layers, four bytes each.
    let layer = 4 * (parameters(&config) - parameters(&without_layers)) / 6;
    let embeddings = 4 * config.vocab_size * config.hidden_size;
    let norm = 4 * config.hidden_size;
    for (number, device) in devices.iter().enumerate() {
        let first = if number == 0 { embeddings } else { 0 };
        let last = if number + 1 == gpus { embeddings + norm } else { 0 };
        assert_eq!(usage(device).allocated, (first + 6 / gpus * layer + last) as u64);
    }
    let prompt = llama.prompt(2, 16)?;
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, 8)?;
        Ok(())
    })
}

/// Places the layers by the map in the file `LLAMA_DEVICE_MAP`, or all on one device without the
/// variable. `cargo memcheck plan` measures this test, and its map is then used here.
#[mem_test(
    device = "cuda",
    cases(model = [tiny, llama2_7b]),
    max_growth = "0 B",
    warmup = 1,
    iterations = 2,
    baseline = false
)]
fn by_map(trial: &mut Trial) -> anyhow::Result<()> {
    let placement = match std::env::var_os("LLAMA_DEVICE_MAP") {
        Some(path) => Placement::read(&std::fs::read_to_string(path)?, trial.devices()?)?,
        None => Placement::one(trial.device()),
    };
    let (config, dtype, prompt_len) = match trial.case::<String>("model")?.as_str() {
        "tiny" => (Config { num_hidden_layers: 11, ..tiny_config() }, DType::F32, 16),
        _ => (Config::config_7b_v2(false), DType::F16, 2048),
    };
    let llama = ShardedLlama::new(config, dtype, placement)?;
    let prompt = llama.prompt(1, prompt_len)?;
    trial.iterate(|_| {
        llama.prefill_and_decode(&prompt, 8)?;
        Ok(())
    })
}
