//! Defects and avoidable peaks of candle, each as two memory tests: `before` runs candle's own
//! code, and `after` the same program with the change that `docs/found.md` describes.
//!
//! A change of a module of candle is a file in `changes`, which the build script applies to a copy
//! of the module. A change of a function is a changed copy of the function in the file of the test.

mod caches;
mod loading;
mod norms;
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

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;

/// Two memory tests of one program, in which `subject` is the first path, and then the second. What
/// the program returns is alive at its end, so that it is in the figure `setup`.
macro_rules! pair {
    (
        $($before:ident)::+ => $($after:ident)::+ $(, device = $on:literal)?;
        |$device:ident| $body:block
    ) => {
        #[memcheck_runtime::mem_test(iterations = 1, warmup = 0 $(, device = $on)?)]
        fn before(trial: &mut memcheck_runtime::Trial) -> anyhow::Result<()> {
            use $($before)::+ as subject;
            let program = |$device: &candle_core::Device| -> anyhow::Result<_> { $body };
            $crate::keep(trial, program)
        }

        #[memcheck_runtime::mem_test(iterations = 1, warmup = 0 $(, device = $on)?)]
        fn after(trial: &mut memcheck_runtime::Trial) -> anyhow::Result<()> {
            use $($after)::+ as subject;
            let program = |$device: &candle_core::Device| -> anyhow::Result<_> { $body };
            $crate::keep(trial, program)
        }
    };
}
pub(crate) use pair;

/// Runs a program as the set-up of a test, and keeps its result until the end.
fn keep<T>(
    trial: &mut memcheck_runtime::Trial,
    program: impl FnOnce(&Device) -> anyhow::Result<T>,
) -> anyhow::Result<()> {
    let kept = program(&trial.device().clone())?;
    trial.iterate(|_| anyhow::Ok(()))?;
    drop(kept);
    Ok(())
}

fn weights(device: &Device) -> VarBuilder<'static> {
    VarBuilder::zeros(DType::F32, device)
}

/// Token 0, `length` times.
fn prompt(length: usize, device: &Device) -> Result<Tensor> {
    Tensor::zeros((1, length), DType::U32, device)
}

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
