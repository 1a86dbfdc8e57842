//! Single operations, each with its calls of the driver. The calls of a simulated device and of a
//! real one could differ in any of them.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{D, DType, Device, IndexOp, Module, Result, Tensor};

const WIDTH: usize = 256;

/// Runs an operation by its name, and drops its results.
///
/// # Errors
///
/// When no operation has this name, or the device refuses it.
pub fn run(operation: &str, dtype: DType, device: &Device) -> Result<()> {
    let square = || Tensor::zeros((WIDTH, WIDTH), dtype, device);
    match operation {
        "matmul" => drop(square()?.matmul(&square()?.t()?)?),
        "batched_matmul" => {
            let batch = Tensor::zeros((3, 2, 16, 32), dtype, device)?;
            drop(batch.matmul(&batch.transpose(2, 3)?.contiguous()?)?);
        }
        "conv1d" => {
            let kernel = Tensor::zeros((8, 4, 3), dtype, device)?;
            drop(Tensor::zeros((2, 4, 50), dtype, device)?.conv1d(&kernel, 1, 2, 1, 1)?);
        }
        "conv2d" => {
            let kernel = Tensor::zeros((8, 4, 3, 3), dtype, device)?;
            drop(Tensor::zeros((2, 4, 20, 20), dtype, device)?.conv2d(&kernel, 1, 1, 1, 1)?);
        }
        "conv_transpose2d" => {
            let kernel = Tensor::zeros((4, 8, 3, 3), dtype, device)?;
            let input = Tensor::zeros((2, 4, 10, 10), dtype, device)?;
            drop(input.conv_transpose2d(&kernel, 1, 0, 2, 1)?);
        }
        "pool_and_upsample" => {
            let image = Tensor::zeros((1, 3, 16, 16), dtype, device)?;
            drop((image.avg_pool2d(2)?, image.max_pool2d(2)?, image.upsample_nearest2d(32, 32)?));
        }
        "norms_and_softmax" => {
            let weight = Tensor::zeros(WIDTH, dtype, device)?;
            let input = square()?;
            drop(candle_nn::ops::softmax_last_dim(&input)?);
            drop(candle_nn::ops::softmax(&input, D::Minus1)?);
            drop(candle_nn::ops::rms_norm(&input, &weight, 1e-6)?);
            drop(candle_nn::ops::layer_norm(&input, &weight, &weight, 1e-5)?);
        }
        "reductions" => {
            let input = square()?;
            drop((input.sum_all()?, input.max(0)?, input.mean_keepdim(D::Minus1)?));
            drop((input.argmax(D::Minus1)?, input.t()?.sum(0)?));
        }
        "indexing" => {
            let input = square()?;
            let ids = Tensor::zeros(7, DType::U32, device)?;
            drop(input.index_select(&ids, 0)?);
            let places = Tensor::zeros((WIDTH, 3), DType::U32, device)?;
            drop(input.gather(&places, 1)?);
            drop(input.i((3.., 5))?.contiguous()?);
        }
        "broadcast_and_where" => {
            let (input, row) = (square()?, Tensor::zeros((1, WIDTH), dtype, device)?);
            drop(input.broadcast_add(&row)?);
            let mask = Tensor::zeros((WIDTH, WIDTH), DType::U8, device)?;
            drop(mask.where_cond(&input, &input.affine(2.0, 1.0)?)?);
        }
        "casts" => {
            let input = square()?;
            for to in [DType::F32, DType::F16, DType::BF16] {
                drop(input.to_dtype(to)?);
            }
        }
        "concatenation" => {
            let input = square()?;
            drop(Tensor::cat(&[&input, &input], 0)?);
            drop(Tensor::cat(&[&input, &input], 1)?);
            drop(Tensor::stack(&[&input, &input], 0)?);
        }
        "random" => {
            drop(Tensor::rand(0f32, 1f32, (7, 5), device)?);
            drop(Tensor::rand(-1f32, 1f32, (7, 5), device)?);
            // An odd number of values, because the generator needs an even one.
            drop(Tensor::randn(0f32, 1f32, 35, device)?);
            drop(Tensor::randn(1f64, 2f64, (4, 4), device)?);
        }
        "host_and_back" => {
            let from_host = Tensor::new(&[1u32, 2, 3], device)?;
            drop(from_host.to_vec1::<u32>()?);
            drop(from_host.to_device(&Device::Cpu)?.to_device(device)?);
        }
        "quantized" => quantized(device)?,
        "experts" => experts(dtype, device)?,
        other => candle_core::bail!("`{other}` is not an operation"),
    }
    device.synchronize()
}

/// Multiplies a quantized matrix by one row and by many. candle uses different kernels for them,
/// and the kernel for many rows keeps a workspace for the device.
fn quantized(device: &Device) -> Result<()> {
    for quantization in [GgmlDType::Q4_0, GgmlDType::Q8_0, GgmlDType::Q4K] {
        let weight = Tensor::zeros((WIDTH, WIDTH), DType::F32, &Device::Cpu)?;
        let weight = QTensor::quantize_onto(&weight, quantization, device)?;
        let layer = QMatMul::from_qtensor(weight)?;
        for rows in [1, 8, 32] {
            drop(layer.forward(&Tensor::zeros((rows, WIDTH), DType::F32, device)?)?);
        }
    }
    Ok(())
}

/// A mixture of four experts with six tokens, each of which goes to two experts.
fn experts(dtype: DType, device: &Device) -> Result<()> {
    const EXPERTS: usize = 4;
    const TOP: usize = 2;
    const TOKENS: usize = 6;
    let input = Tensor::zeros((TOKENS, WIDTH), dtype, device)?;
    let weights = Tensor::zeros((EXPERTS, WIDTH, WIDTH), dtype, device)?;
    let sorted: Vec<u32> = (0..(TOKENS * TOP) as u32).collect();
    let chosen: Vec<u32> =
        sorted.iter().map(|place| place * EXPERTS as u32 / sorted.len() as u32).collect();
    let sorted = Tensor::new(sorted, device)?;
    let chosen = Tensor::new(chosen, device)?;
    for is_prefill in [true, false] {
        let out =
            candle_nn::moe::moe_gemm(&input, &weights, &None, &sorted, &chosen, TOP, is_prefill)?;
        drop(out);
    }
    Ok(())
}
