//! Of `functional/soak.rs`: leaks that begin late or are rare, and bodies that end during a soak.

use std::time::{Duration, Instant};

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn block(device: &Device) -> Result<Tensor> {
    Tensor::zeros(1 << 16, DType::U8, device)
}

/// 64 KiB in every 2,000th iteration.
#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_rarely(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(10_000);
    trial.iterate(|i| {
        if i % 2_000 == 1_999 {
            kept.push(block(&device)?);
        }
        Result::Ok(())
    })
}

/// 64 KiB in every iteration after one second.
#[mem_test(max_growth = "0 B", max_retained = "1 TiB", baseline = false)]
fn leaks_late(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(1_000_000);
    let started = Instant::now();
    trial.iterate(|_| {
        if started.elapsed() > Duration::from_secs(1) {
            kept.push(block(&device)?);
        }
        Result::Ok(())
    })
}

/// A ring of twelve blocks, and work.
#[mem_test(max_growth = "0 B", baseline = false)]
fn clean(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut ring = std::collections::VecDeque::new();
    trial.iterate(|_| {
        block(&device)?;
        ring.push_back(block(&device)?);
        if ring.len() > 12 {
            ring.pop_front();
        }
        Result::Ok(())
    })
}

/// Grows in every iteration, but within its limit.
#[mem_test(max_growth = "64 KiB", max_retained = "1 TiB", baseline = false)]
fn grows_within_its_limit(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(1_000_000);
    trial.iterate(|i| {
        if i < 20_000 {
            kept.push(Tensor::zeros(1 << 12, DType::U8, &device)?);
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn has_data_for_500_iterations(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|i| match i {
        0..500 => block(&device).map(|_| ()),
        _ => candle_core::bail!("no data"),
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn dies_in_iteration_500(trial: &mut Trial) {
    trial.iterate(|i| {
        if i == 500 {
            std::process::abort()
        }
    });
}

#[mem_test(baseline = false)]
fn does_not_iterate(trial: &mut Trial) {
    let _ = trial.device();
}
