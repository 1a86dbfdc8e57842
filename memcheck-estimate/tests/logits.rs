//! Every architecture computes the same outputs, and samples the same tokens, on the CPU and on the
//! device of this build. `cargo test` compares the CPU with itself; `just logits` builds the test
//! for the simulated device.

mod tiny;

use candle_core::{D, DType, Device, Result, Tensor};
use candle_transformers::generation::LogitsProcessor;
use memcheck_core::wire::estimate::Question;
use memcheck_estimate::{architectures, generate};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tiny::{is_encoder, question};

/// The largest difference of two outputs, relative to the largest output of the model or to 1.
const TOLERANCE: f64 = 2e-4;

const PROMPT: [u32; 8] = [5, 17, 3, 99, 64, 2, 120, 41];
const TOKENS: u64 = 6;

/// Random weights with a fixed seed for each name.
fn elements(name: &str, count: usize) -> Vec<f32> {
    let seed =
        name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut random = StdRng::seed_from_u64(seed);
    // The weights of a norm are near 1, so that the values do not vanish from layer to layer.
    let middle = if name.contains("norm") && name.ends_with("weight") { 1.0 } else { 0.0 };
    (0..count).map(|_| middle + random.random_range(-0.2..0.2)).collect()
}

fn other_elements(name: &str, count: usize) -> Vec<f32> {
    elements(&format!("{name} again"), count)
}

/// The outputs for the prompt and for each token, and the tokens that were sampled.
#[derive(Debug, PartialEq)]
struct Run {
    outputs: Vec<Vec<f64>>,
    tokens: Vec<u32>,
}

fn run(
    model: &str,
    weights: memcheck_estimate::Elements,
    device: &Device,
) -> std::result::Result<Run, String> {
    let tokens = if is_encoder(model) { 0 } else { TOKENS };
    let asked = Question { generate: tokens, ..question(model) };
    let mut sampler = LogitsProcessor::new(299_792_458, Some(0.8), Some(0.9));
    let mut run = Run { outputs: Vec::new(), tokens: Vec::new() };
    generate(&asked, weights, &PROMPT, device, |output: &Tensor| -> Result<u32> {
        let classes = output.dim(D::Minus1)?;
        let rows = output.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.reshape(((), classes))?;
        run.outputs.push(rows.flatten_all()?.to_vec1()?);
        if tokens == 0 {
            return Ok(0);
        }
        // The device's own values reach the sampler.
        let last = output.reshape(((), classes))?;
        let last = last.get(last.dim(0)? - 1)?;
        let token = sampler.sample(&last)?;
        run.tokens.push(token);
        Ok(token % 128)
    })?;
    Ok(run)
}

/// Returns the largest relative difference, or the reason why the runs cannot be compared.
fn difference(expected: &Run, actual: &Run) -> std::result::Result<f64, String> {
    if expected.tokens != actual.tokens {
        return Err(format!("tokens {:?}, expected {:?}", actual.tokens, expected.tokens));
    }
    let pairs = || expected.outputs.iter().flatten().zip(actual.outputs.iter().flatten());
    let count = |run: &Run| run.outputs.iter().map(Vec::len).collect::<Vec<_>>();
    if count(expected) != count(actual) {
        return Err("the outputs have other sizes".into());
    }
    if pairs().any(|(a, b)| !a.is_finite() || !b.is_finite()) {
        return Err("an output is not a finite number".into());
    }
    let largest = pairs().map(|(a, _)| a.abs()).fold(1.0, f64::max);
    let distinct = pairs().map(|(a, _)| a.to_bits()).collect::<std::collections::BTreeSet<_>>();
    if distinct.len() < 16 {
        return Err(format!("the outputs have only {} values", distinct.len()));
    }
    Ok(pairs().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest)
}

/// The message of a model that candle's own code refuses on CUDA, before it calls the driver.
fn refusal(model: &str) -> Option<&'static str> {
    match model {
        "based" => Some("matmul is only supported for contiguous tensors"),
        // In a build for CUDA, its experts are those of a fused kernel for 16 bits.
        "qwen3_moe" => Some("moe_gemm only accepts f16/bf16 inputs"),
        _ => None,
    }
}

#[test]
fn every_architecture_computes_the_outputs_and_samples_the_tokens_of_the_cpu() -> Result<()> {
    let device = match candle_core::utils::cuda_is_available() {
        true => Device::new_cuda(0)?,
        false => Device::Cpu,
    };
    let mut failed = Vec::new();
    for model in architectures() {
        let expected = run(model, elements, &Device::Cpu);
        let actual = run(model, elements, &device);
        let result = expected.and_then(|expected| difference(&expected, &actual?));
        match &result {
            Ok(difference) => println!("{model:<24} {difference:.1e}"),
            Err(why) => println!("{model:<24} {why}"),
        }
        let is_right = match (result, refusal(model)) {
            (Err(why), Some(refusal)) => why.contains(refusal),
            (result, None) => result.is_ok_and(|difference| difference <= TOLERANCE),
            (Ok(_), Some(_)) => device.is_cpu(),
        };
        if !is_right {
            failed.push(model);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    Ok(())
}

#[test]
fn other_weights_give_other_outputs() {
    let [one, other] = [elements, other_elements]
        .map(|weights: memcheck_estimate::Elements| run("llama", weights, &Device::Cpu).unwrap());
    assert!(difference(&one, &other).is_err_and(|why| why.starts_with("tokens")));
}
