//! Buffers that keep the size of the largest request. They do not grow after that request, but they
//! are never freed.

use std::sync::Mutex;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::kv_cache::Cache;
use memcheck_runtime::Trial;

use super::{Family, Runs, Scenario, scenario};

const SOURCE: &str = include_str!("ratchets.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, retained workspace_of_the_largest_request, "cache-keeps-largest"),
    scenario!(SOURCE, retained cache_of_the_longest_request, "cache-keeps-largest"),
    scenario!(SOURCE, retained workspace_of_quantized_products, "cache-keeps-largest", runs: Runs::OnGpu),
];

/// A scratch buffer in a static, which is replaced when a request needs a larger one.
pub mod workspace_of_the_largest_request {
    use super::*;

    static WORKSPACE: Mutex<Option<Tensor>> = Mutex::new(None);

    /// KiB that requests need, repeated. The largest comes second.
    const REQUESTS: [usize; 5] = [12, 32, 4, 28, 16];

    /// The largest request.
    pub fn bytes(_leg: Family) -> u64 {
        32 << 10
    }

    /// Never frees the buffer.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        trial.iterate(|request| {
            let floats = REQUESTS[request % REQUESTS.len()] * 256;
            let mut workspace = WORKSPACE.lock().expect("not poisoned");
            if workspace.as_ref().is_none_or(|workspace| workspace.elem_count() < floats) {
                // leaks: workspace_of_the_largest_request
                *workspace = Some(zeros!(floats, &device)?);
            }
            Ok(())
        })
    }

    /// Frees the buffer when the server stops.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        leaky(trial)?;
        *WORKSPACE.lock().expect("not poisoned") = None;
        Ok(())
    }
}

/// A server's cache of candle-nn, which is reset before each request. The reset drops the tokens,
/// but keeps the capacity.
pub mod cache_of_the_longest_request {
    use super::*;

    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

    /// Tokens of requests, repeated. The longest comes third.
    const REQUESTS: [usize; 5] = [3, 8, 30, 4, 16];
    /// Tokens for which a cache has room from its first one on, and by which it grows.
    const STEP: usize = 4;
    /// Floats of a token.
    const WIDTH: usize = 256;

    /// The longest request in whole steps: 32 tokens of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (30_usize.next_multiple_of(STEP) * WIDTH * 4) as u64
    }

    /// Resets the cache and keeps it.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        trial.iterate(|request| {
            let tokens = zeros!((REQUESTS[request % REQUESTS.len()], WIDTH), &device)?;
            let mut cache = CACHE.lock().expect("not poisoned");
            let cache = cache.get_or_insert_with(|| Cache::new(0, STEP));
            cache.reset();
            // leaks: cache_of_the_longest_request
            Ok(cache.append(&tokens)?)
        })
    }

    /// Drops the cache when the server stops.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        leaky(trial)?;
        *CACHE.lock().expect("not poisoned") = None;
        Ok(())
    }
}

/// The workspace that candle keeps for quantized products of more than eight rows. There is one for
/// each device, and candle never frees it.
pub mod workspace_of_quantized_products {
    use super::*;

    /// Rows of the input, and the width of the layer.
    const ROWS: usize = 16;
    const WIDTH: usize = 256;

    /// 16 MiB, and `4 rows ceil(width / 512) + 128` blocks of 144 bytes.
    pub fn bytes(_leg: Family) -> u64 {
        workspace_bytes(ROWS, WIDTH)
    }

    /// Multiplies by the quantized weight.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = QMatMul::from_qtensor(quantized(WIDTH, trial.device())?)?;
        let input = Tensor::zeros((ROWS, WIDTH), DType::F32, trial.device())?;
        trial.iterate(|_| {
            // leaks: workspace_of_quantized_products
            layer.forward(&input)?;
            Ok(())
        })
    }

    /// Multiplies by a weight in f32, because products of up to eight rows have a workspace too.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let weight = quantized(WIDTH, trial.device())?.dequantize(trial.device())?;
        let input = Tensor::zeros((ROWS, WIDTH), DType::F32, trial.device())?;
        trial.iterate(|_| {
            input.matmul(&weight.t()?)?;
            Ok(())
        })
    }
}

/// A square weight in `Q8_0`.
pub(super) fn quantized(width: usize, device: &Device) -> Result<QTensor> {
    let weight = Tensor::zeros((width, width), DType::F32, device)?;
    QTensor::quantize(&weight, GgmlDType::Q8_0)
}

/// Bytes of the workspace that candle's `fast_mmq` keeps for a device: a fix-up buffer of 16 MiB,
/// and room for the quantized input in blocks of 144 bytes for 128 columns, padded to 512 columns,
/// plus 128 spare blocks.
pub(super) const fn workspace_bytes(rows: usize, width: usize) -> u64 {
    (16 << 20) + ((rows * 4 * width.div_ceil(512) + 128) * 144) as u64
}
