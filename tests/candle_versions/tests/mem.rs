//! Models by their closed formulas, and operations whose values are read back. Each body prints
//! nothing and asserts all: a value that differs from version to version is a failed test.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::ops::softmax;
use candle_versions::bert::Bert;
use candle_versions::llama::{Llama, Session};
use memcheck_runtime::{Trial, mem_test};

/// On the host, names and maps of tensors are counted too.
#[track_caller]
fn assert_weights(trial: &Trial, bytes: u64) {
    if trial.device().is_cuda() {
        assert_eq!(trial.usage().allocated, bytes);
    }
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn bert(trial: &mut Trial) -> Result<()> {
    let bert = Bert::tiny(trial.device())?;
    assert_weights(trial, bert.weight_bytes() as u64);
    let inputs = bert.inputs(2, 32)?;
    trial.iterate(|_| bert.forward(&inputs).map(drop))?;
    let peak = bert.forward_peak_bytes(2, 32) as u64;
    if trial.device().is_cuda() {
        assert_eq!(trial.usage().peak_allocated, peak);
    }
    Ok(())
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn llama_prefill(trial: &mut Trial) -> Result<()> {
    let llama = Llama::tiny(trial.device(), DType::F32)?;
    assert_weights(trial, llama.weight_bytes() as u64);
    let prompt = llama.prompt(2, 128)?;
    trial.iterate(|_| llama.prefill_and_decode(&prompt, 0).map(drop))?;
    let peak = llama.prefill_peak_bytes(2, 128) as u64;
    if trial.device().is_cuda() {
        assert_eq!(trial.usage().peak_allocated, peak);
    }
    Ok(())
}

/// Keeps its cache: the bytes of a leak are those of the keys and values of one token.
#[mem_test(max_growth = "0 B", baseline = false)]
fn llama_keeps_its_cache(trial: &mut Trial) -> Result<()> {
    let llama = Llama::tiny(trial.device(), DType::F32)?;
    let prompt = llama.prompt(1, 16)?;
    let mut session = Session::new(&llama, &prompt)?;
    assert_eq!(session.leak_bytes(), 512);
    trial.iterate(|_| session.step().map(drop))
}

fn ramp(shape: (usize, usize), device: &Device) -> Result<Tensor> {
    let count = shape.0 * shape.1;
    let values = Tensor::arange(0f32, count as f32, device)?;
    values.affine(1.0 / count as f64, -0.5)?.reshape(shape)
}

#[track_caller]
fn assert_close(values: &Tensor, expected: &Tensor, tolerance: f32) -> Result<()> {
    let values = values.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
    let expected = expected.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
    assert_eq!(values.len(), expected.len());
    for (at, (value, wanted)) in values.iter().zip(&expected).enumerate() {
        assert!((value - wanted).abs() <= tolerance, "value {at} is {value}, not {wanted}");
    }
    Ok(())
}

/// The same operation on the device and on the CPU gives the same values.
fn compare(
    trial: &mut Trial,
    tolerance: f32,
    operation: impl Fn(&Device) -> Result<Tensor>,
) -> Result<()> {
    let device = trial.device().clone();
    let expected = operation(&Device::Cpu)?;
    trial.iterate(|_| assert_close(&operation(&device)?, &expected, tolerance))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn matmul(trial: &mut Trial) -> Result<()> {
    compare(trial, 1e-5, |device| ramp((8, 16), device)?.matmul(&ramp((16, 4), device)?))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn softmax_of_rows(trial: &mut Trial) -> Result<()> {
    compare(trial, 1e-6, |device| softmax(&ramp((4, 32), device)?, 1))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn casts(trial: &mut Trial) -> Result<()> {
    compare(trial, 0.0, |device| {
        ramp((4, 8), device)?.to_dtype(DType::F16)?.to_dtype(DType::BF16)?.to_dtype(DType::F64)
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn index_select(trial: &mut Trial) -> Result<()> {
    compare(trial, 0.0, |device| {
        let rows = Tensor::new(&[3u32, 0, 3], device)?;
        ramp((4, 8), device)?.index_select(&rows, 0)
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn quantized_matmul(trial: &mut Trial) -> Result<()> {
    // The activations are quantized too, in blocks of 32.
    compare(trial, 2e-2, |device| {
        let weights = QTensor::quantize(&ramp((4, 64), device)?, GgmlDType::Q8_0)?;
        QMatMul::from_qtensor(weights)?.forward(&ramp((1, 64), device)?)
    })
}

/// In bf16, candle 0.9 and 0.10 add up in bf16 on CUDA, and 0.11 in f32. The values are small whole
/// numbers, whose sums both types represent.
#[mem_test(max_growth = "0 B", baseline = false)]
fn sums_in_bf16(trial: &mut Trial) -> Result<()> {
    compare(trial, 0.0, |device| {
        let values = Tensor::arange(0f32, 16., device)?.reshape((2, 8))?;
        values.to_dtype(DType::BF16)?.sum(1)
    })
}
