//! Of `functional/values.rs`: a sampler, reads of device memory, and small models.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{VarBuilder, VarMap};
use candle_transformers::generation::LogitsProcessor;
use candle_transformers::models::{bert, llama};
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

/// The weights of a model on the CPU.
fn on_cpu(weights: &VarMap) -> Result<VarBuilder<'static>> {
    let all = weights.data().lock().expect("no thread has panicked");
    let copy = |(name, weight): (&String, &Var)| {
        Ok((name.clone(), weight.as_tensor().to_device(&Device::Cpu)?))
    };
    let copies = all.iter().map(copy).collect::<Result<_>>()?;
    Ok(VarBuilder::from_tensors(copies, DType::F32, &Device::Cpu))
}

/// Runs a model in each iteration, and compares its output with that of the same weights on the CPU.
fn compare<Model>(
    trial: &mut Trial,
    load: impl Fn(VarBuilder<'_>) -> Result<Model>,
    run: impl Fn(&Model, &Tensor) -> Result<Tensor>,
) -> anyhow::Result<()> {
    let (device, weights) = (trial.device().clone(), VarMap::new());
    let model = load(VarBuilder::from_varmap(&weights, DType::F32, &device))?;
    let ids = Tensor::arange(100u32, 228, &Device::Cpu)?.unsqueeze(0)?;
    let expected: Vec<f32> = run(&load(on_cpu(&weights)?)?, &ids)?.flatten_all()?.to_vec1()?;
    let ids = ids.to_device(&device)?;
    trial.iterate(|_| {
        let output: Vec<f32> = run(&model, &ids)?.flatten_all()?.to_vec1()?;
        let largest = expected.iter().fold(0_f32, |largest, x| largest.max(x.abs()));
        let errors = output.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let error = errors.fold(0_f32, f32::max);
        anyhow::ensure!(largest > 0.1 && error < largest / 1000., "{error} of {largest}");
        anyhow::ensure!(output.len() == expected.len());
        Ok(())
    })
}

/// BERT-mini with 128 tokens.
#[mem_test(baseline = false)]
fn bert_mini(trial: &mut Trial) -> anyhow::Result<()> {
    let config = bert::Config {
        hidden_size: 256,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        intermediate_size: 1024,
        ..bert::Config::default()
    };
    let run = |model: &bert::BertModel, ids: &Tensor| model.forward(ids, &ids.zeros_like()?, None);
    compare(trial, |weights| bert::BertModel::load(weights, &config), run)
}

/// A Llama of the same size.
#[mem_test(baseline = false)]
fn llama_mini(trial: &mut Trial) -> anyhow::Result<()> {
    let config = llama::Config {
        hidden_size: 256,
        intermediate_size: 1024,
        vocab_size: 32_000,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 4,
        use_flash_attn: false,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: None,
        max_position_embeddings: 512,
        tie_word_embeddings: false,
    };
    let run = |model: &llama::Llama, ids: &Tensor| {
        let mut cache = llama::Cache::new(false, DType::F32, &config, ids.device())?;
        model.forward(ids, 0, &mut cache)
    };
    compare(trial, |weights| llama::Llama::load(weights, &config), run)
}

/// A product whose sums are not exact has the bits of the CPU, because both use the same crate.
#[mem_test(baseline = false)]
fn product_of_a_layer(trial: &mut Trial) -> anyhow::Result<()> {
    let numbers = |count: usize| (0..count).map(|at| (at as f32 * 0.37).sin()).collect();
    let lhs = Tensor::from_vec(numbers(64 * 256), (64, 256), &Device::Cpu)?;
    let rhs = Tensor::from_vec(numbers(256 * 256), (256, 256), &Device::Cpu)?;
    let device = trial.device().clone();
    for (lhs, rhs) in [(lhs.clone(), rhs.clone()), (lhs, rhs.t()?)] {
        let expected: Vec<f32> = lhs.matmul(&rhs)?.flatten_all()?.to_vec1()?;
        let (lhs, rhs) = (lhs.to_device(&device)?, rhs.to_device(&device)?);
        let product: Vec<f32> = lhs.matmul(&rhs)?.flatten_all()?.to_vec1()?;
        anyhow::ensure!(product == expected);
    }
    trial.iterate(|_| Ok(()))
}
