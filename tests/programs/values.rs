//! Of `functional/values.rs`: a sampler, and reads of device memory.

use candle_core::{DType, Device, Result, Tensor};
use candle_transformers::generation::LogitsProcessor;
use memcheck_runtime::{Trial, mem_test};

/// A model with one layer: the token's row of a table, times a matrix.
fn generate(device: &Device, mut token: u32) -> anyhow::Result<Vec<u32>> {
    let table = Tensor::arange(0f32, 64., device)?.reshape((8, 8))?.sin()?;
    let mut sampler = LogitsProcessor::new(7, Some(0.8), Some(0.9));
    let mut tokens = Vec::new();
    for _ in 0..6 {
        let logits = table.narrow(0, token as usize, 1)?.matmul(&table)?.get(0)?;
        token = sampler.sample(&logits)?; // line: the sampler
        tokens.push(token);
    }
    Ok(tokens)
}

#[mem_test(baseline = false)]
fn read(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(4, DType::F32, trial.device())?;
    trial.iterate(|_| {
        let sum = ones.affine(2., 1.)?.sum_all()?.to_scalar::<f32>()?; // line: one number
        println!("sum {sum}");
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn sampler(trial: &mut Trial) -> anyhow::Result<()> {
    let expected = generate(&Device::Cpu, 3)?;
    trial.iterate(|_| {
        anyhow::ensure!(generate(trial.device(), 3)? == expected);
        Ok(())
    })
}

#[mem_test(baseline = false, values = "never")]
fn without_values(device: &Device) -> Result<()> {
    Tensor::ones(4, DType::F32, device)?.to_vec1::<f32>()?;
    Ok(())
}

#[mem_test(baseline = false)]
fn before_and_after_the_iterations(trial: &mut Trial) -> Result<()> {
    let fresh = Tensor::ones(4, DType::U32, trial.device())?;
    fresh.to_vec1::<u32>()?;
    trial.iterate(|_| fresh.affine(1., 1.).map(drop))?;
    fresh.to_vec1::<u32>()?;
    Ok(())
}

fn embed(id: u32, device: &Device) -> Result<()> {
    let table = Tensor::zeros((64, 8), DType::F32, device)?;
    table.embedding(&Tensor::new(&[3u32, id], device)?)?.to_vec2::<f32>()?;
    Ok(())
}

#[mem_test(baseline = false)]
fn an_id_outside(device: &Device) -> Result<()> {
    embed(64, device)
}

#[mem_test(baseline = false)]
fn an_id_inside(device: &Device) -> Result<()> {
    embed(63, device)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn kept_and_seen_late(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(4, DType::F32, trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|index| {
        kept.push(ones.affine(2., 1.)?);
        if index >= 12 {
            ones.to_vec1::<f32>()?; // line: seen late
        }
        Ok(())
    })
}
