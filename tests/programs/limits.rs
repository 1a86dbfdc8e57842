//! Of `functional/limits.rs`: caches with a declared size, and iterations that allocate too much.

use std::collections::hash_map::Entry::Vacant;
use std::collections::{HashMap, VecDeque};

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// 4,096 B.
fn entry(device: &Device) -> Result<Tensor> {
    Tensor::zeros(1024, DType::F32, device) // line: the entry
}

/// A cache of 64 entries, with one key in each iteration.
fn fills_a_cache(trial: &mut Trial) -> Result<()> {
    // Its table is memory of the set-up.
    let mut cache = HashMap::with_capacity(64);
    trial.iterate(|i| {
        if let Vacant(place) = cache.entry(i % 64) {
            place.insert(entry(trial.device())?);
        }
        Result::Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B", max_kept = "256 KiB")]
fn cache_of_its_declared_size(trial: &mut Trial) -> Result<()> {
    fills_a_cache(trial)
}

#[mem_test(baseline = false, max_growth = "0 B", max_kept = "255 KiB")]
fn cache_above_its_declared_size(trial: &mut Trial) -> Result<()> {
    fills_a_cache(trial)
}

/// Evicts the oldest of 400 entries, of which it adds two in each iteration.
fn long_cache(trial: &mut Trial) -> Result<()> {
    let mut cache = VecDeque::with_capacity(402);
    trial.iterate(|_| {
        for _ in 0..2 {
            cache.push_back(entry(trial.device())?);
            if cache.len() > 400 {
                cache.pop_front();
            }
        }
        Result::Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B", max_kept_mb = 1.5625)]
fn long_cache_of_its_declared_size(trial: &mut Trial) -> Result<()> {
    long_cache(trial)
}

fn leak(trial: &mut Trial) -> Result<()> {
    let mut kept = Vec::with_capacity(2_000);
    trial.iterate(|_| {
        kept.push(entry(trial.device())?);
        Result::Ok(())
    })
}

/// Passes its limit after 200 iterations, which is later than the growth alone is decided.
#[mem_test(baseline = false, max_growth = "0 B", max_kept = "800 KiB")]
fn leak_beyond_the_limit(trial: &mut Trial) -> Result<()> {
    leak(trial)
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn leak_without_a_limit(trial: &mut Trial) -> Result<()> {
    leak(trial)
}

/// A "model" of 1 MiB and its input, of 4,096 B.
fn model(device: &Device) -> Result<Tensor> {
    Tensor::zeros(1 << 20, DType::U8, device)
}

#[mem_test(baseline = false, max_allocated = "64 KiB")]
fn loads_a_model_in_every_iteration(trial: &mut Trial) -> Result<()> {
    trial.iterate(|_| {
        let model = model(trial.device())?;
        entry(trial.device())?;
        drop(model);
        Result::Ok(())
    })
}

#[mem_test(baseline = false, max_allocated = "4 KiB")]
fn loads_a_model_once(trial: &mut Trial) -> Result<()> {
    let _model = model(trial.device())?;
    trial.iterate(|_| entry(trial.device()).map(drop))
}
