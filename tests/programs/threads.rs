//! Of `functional/threads.rs`: bodies that use rayon's pool, and one that uses no GPU.

use std::sync::Barrier;

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};
use rayon::prelude::*;

/// A tensor of 65,536 B on each thread of the pool at the same time.
fn on_each_thread(trial: &mut Trial) -> Result<()> {
    let barrier = Barrier::new(rayon::current_num_threads());
    trial.iterate(|_| {
        let made = rayon::broadcast(|_| {
            let layer = Tensor::zeros(1 << 16, DType::U8, trial.device())?;
            barrier.wait();
            Result::Ok(layer)
        });
        made.into_iter().collect::<Result<Vec<_>>>().map(drop)
    })
}

#[mem_test(baseline = false)]
fn layers_in_parallel(trial: &mut Trial) -> Result<()> {
    on_each_thread(trial)
}

#[mem_test(baseline = false, threads = 4)]
fn layers_on_four_threads(trial: &mut Trial) -> Result<()> {
    on_each_thread(trial)
}

/// Computes in the pool, but allocates outside of it.
#[mem_test(baseline = false)]
fn sums_in_parallel(trial: &mut Trial) -> Result<()> {
    let values: Vec<u64> = (0..10_000).collect();
    trial.iterate(|_| {
        assert_eq!(values.par_iter().sum::<u64>(), 49_995_000);
        Tensor::zeros(1 << 16, DType::U8, trial.device()).map(drop)
    })
}

/// Candle computes so many elements on a pool of its own.
#[mem_test(baseline = false, device = "cpu", max_retained = "0 B")]
fn adds_many_elements(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(1 << 16, DType::F32, trial.device())?;
    trial.iterate(|_| ones.add(&ones).map(drop))
}

/// The device is not that of the test.
fn keeps_on_the_host(trial: &mut Trial, bytes: usize) -> Result<()> {
    let mut kept = Vec::with_capacity(1_100);
    trial.iterate(|_| {
        kept.push(Tensor::zeros(bytes, DType::U8, &Device::Cpu)?);
        if bytes == 1024 {
            kept.clear();
        }
        Result::Ok(())
    })
}

#[mem_test(baseline = false)]
fn picks_the_cpu_and_grows(trial: &mut Trial) -> Result<()> {
    keeps_on_the_host(trial, 1 << 20)
}

#[mem_test(baseline = false)]
fn picks_the_cpu(trial: &mut Trial) -> Result<()> {
    keeps_on_the_host(trial, 1024)
}
