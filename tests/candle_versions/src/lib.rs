//! The BERT and the Llama of memcheck-tests with their closed formulas, compiled with this package's
//! candle.

use candle_core::{Device, Result, Tensor};

#[path = "../../src/bert.rs"]
pub mod bert;
#[path = "../../src/llama.rs"]
pub mod llama;

/// Ids of tokens, `(batch, len)` of u32.
///
/// # Errors
///
/// When the device cannot hold them.
pub fn token_ids(batch: usize, len: usize, vocabulary: usize, device: &Device) -> Result<Tensor> {
    let ids: Vec<u32> = (0..batch * len).map(|index| (index % vocabulary) as u32).collect();
    Tensor::from_vec(ids, (batch, len), device)
}
