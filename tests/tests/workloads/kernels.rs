//! candle's kernels in C, which allocate memory themselves: mixtures of experts and quantized
//! products. On `sim` models of the simulator replace their launchers. A build with nvcc uses
//! candle's own launchers. Both share one baseline, which proves the models.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::moe::{moe_gemm, moe_gemm_gguf};
use memcheck_runtime::{Trial, mem_test};

/// Experts, experts per token, tokens, and the width of each.
const EXPERTS: usize = 8;
const TOPK: usize = 2;
const TOKENS: usize = 64;
const WIDTH: usize = 256;

/// The tokens sorted by expert, and the expert of each.
fn routes(device: &Device) -> Result<(Tensor, Tensor)> {
    let routes = TOKENS * TOPK;
    let experts = (0..routes).map(|i| (i * EXPERTS / routes) as u32).collect::<Vec<_>>();
    let tokens = Tensor::arange(0u32, routes as u32, device)?;
    Ok((tokens, Tensor::from_vec(experts, routes, device)?))
}

#[mem_test(device = "cuda", max_growth = "0 B", cases(prefill = [true, false], dtype = [f16, bf16]))]
fn experts(trial: &mut Trial) -> anyhow::Result<()> {
    let (prefill, dtype): (bool, DType) = (trial.case("prefill")?, trial.case("dtype")?);
    let device = trial.device().clone();
    let input = Tensor::zeros((TOKENS, WIDTH), dtype, &device)?;
    let weights = Tensor::zeros((EXPERTS, WIDTH, WIDTH), dtype, &device)?;
    let (tokens, experts) = routes(&device)?;
    trial.iterate(|_| {
        moe_gemm(&input, &weights, &None, &tokens, &experts, TOPK, prefill)?;
        anyhow::Ok(())
    })
}

#[mem_test(device = "cuda", max_growth = "0 B", cases(prefill = [true, false]))]
fn quantized_experts(trial: &mut Trial) -> anyhow::Result<()> {
    let prefill: bool = trial.case("prefill")?;
    let device = trial.device().clone();
    let input = Tensor::zeros((TOKENS, WIDTH), DType::F32, &device)?;
    let weights = Tensor::zeros((EXPERTS, WIDTH, WIDTH), DType::F32, &Device::Cpu)?;
    let weights = QTensor::quantize_onto(&weights, GgmlDType::Q8_0, &device)?;
    let (tokens, experts) = routes(&device)?;
    trial.iterate(|_| {
        moe_gemm_gguf(&input, &weights, &None, &tokens, &experts, TOPK, prefill, DType::F16)?;
        anyhow::Ok(())
    })
}

/// One, few and many rows take three different paths through candle.
#[mem_test(
    device = "cuda",
    max_growth = "0 B",
    max_retained = "32 MiB",
    cases(rows = [1, 4, 64])
)]
fn quantized_product(trial: &mut Trial) -> anyhow::Result<()> {
    let rows: usize = trial.case("rows")?;
    let device = trial.device().clone();
    let weights = Tensor::zeros((WIDTH, WIDTH), DType::F32, &Device::Cpu)?;
    let weights = QTensor::quantize_onto(&weights, GgmlDType::Q4K, &device)?;
    let weights = QMatMul::from_qtensor(weights)?;
    let input = Tensor::zeros((rows, WIDTH), DType::F32, &device)?;
    trial.iterate(|_| {
        weights.forward(&input)?;
        anyhow::Ok(())
    })
}
