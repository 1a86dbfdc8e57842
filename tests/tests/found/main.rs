//! Defects and avoidable peaks of candle and of crates around it, each as two memory tests. `before`
//! runs the published code, and `after` the same program with the change that `docs/found.md`
//! describes.
//!
//! A change of a module is a file in `changes`, which the build script applies to a copy
//! of the module. A change of a function is a changed copy of the function in the file of the test.

mod caches;
mod crates;
mod loading;
mod norms;
mod pair;
mod prompts;
mod quantized;
mod training;
mod views;

#[allow(
    warnings,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "candle's sources, with the changes of the folder `changes`"
)]
mod changed {
    include!(concat!(env!("OUT_DIR"), "/changed.rs"));
}

use candle_core::{Device, Result, Tensor};

pub(crate) use pair::{compare, input, pair, prompt, size, weights};

/// Reads a configuration of candle whose fields are private.
fn config<T: serde::de::DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    Ok(serde_json::from_str(text)?)
}

/// Asserts that a change computes the values that candle computes.
fn assert_same(changed: &Tensor, candle: &Tensor) -> Result<()> {
    let difference = (changed - candle)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    assert!(difference < 1e-5, "{difference}");
    Ok(())
}

/// Random values on the CPU.
fn random(shape: impl Into<candle_core::Shape>) -> Result<Tensor> {
    Tensor::randn(0f32, 1f32, shape, &Device::Cpu)
}
