//! Transformer workloads, which the memory tests of this package run.
//!
//! Each module is one model or one habit, written as plain functions over a
//! [`candle_core::Device`], so that the same code runs on the CPU, on a simulated GPU and on a real
//! one. Two modules, [`overhead`] and [`interception`], time workloads for benchmarks. The others
//! do not measure.
//!
//! | module | contents | purpose |
//! |---|---|---|
//! | [`bert`] | encoder, one forward pass | the peak of a forward pass |
//! | [`llama`] | decoder with a KV cache, tiny and Llama-2-7B | caches, and weights that fill a card |
//! | [`sharded`] | the same decoder over several devices | placement by a device map |
//! | [`models`] | tiny decoders of a dozen families | comparison of simulated and real devices |
//! | [`operations`] | single operations | comparison of simulated and real devices |
//! | [`t5`] | encoder and decoder whose cache must be cleared | growth per token if it is not cleared |
//! | [`whisper`] | audio encoder and text decoder | memory retained after the work is done |
//! | [`training`] | a transformer that trains, with AdamW | losses kept as tensors |
//! | [`mixed_precision`] | layers in a half type over weights in f32 | the savings of a half type in training |
//! | [`choices`] | workloads that decide with computed values | figures that depend on values |
//! | [`checkpointing`] | a deep transformer whose layers are computed twice | activations of a few layers instead of all |
//! | [`leaks`] | one small layer | the other habits that leak, with exact bytes |
//! | [`pool`] | blocks of many sizes | the memory that the driver's pool reserves |
//! | [`scenarios`] | programs that leak, and clean ones | the corpus against which detection is measured |
//!
//! A workload that leaks has a fixed twin, and a formula over its shapes for the bytes that one
//! iteration leaks. Weights are zeros unless the workload trains or decides with computed values:
//! elsewhere values do not change the allocations, and zeros need no download.
//!
//! Formulas count tensor storage: elements times the size of the element, as candle requests it. If
//! a workload also keeps blocks below 1 KiB (scalars, mostly), another constant counts them,
//! because the host's figures leave such blocks out and a GPU's do not.
#![forbid(unsafe_code)]

use candle_core::{Device, Result, Tensor};

pub mod bert;
pub mod checkpointing;
pub mod choices;
pub mod interception;
pub mod leaks;
pub mod llama;
pub mod mixed_precision;
pub mod models;
pub mod operations;
pub mod overhead;
pub mod pool;
pub mod recordings;
#[cfg(feature = "scenarios")]
pub mod scenarios;
#[cfg(feature = "scenarios")]
pub mod sharded;
pub mod t5;
pub mod training;
pub mod whisper;

/// Token ids of shape `(batch, seq)`, u32: 0, 1, 2, … modulo `vocab`.
///
/// # Errors
///
/// When the device cannot hold `batch * seq * 4` bytes.
pub fn token_ids(batch: usize, seq: usize, vocab: usize, device: &Device) -> Result<Tensor> {
    let ids = (0..batch * seq).map(|i| (i % vocab) as u32).collect::<Vec<_>>();
    Tensor::from_vec(ids, (batch, seq), device)
}
