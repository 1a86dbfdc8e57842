//! Of `functional/runner.rs`.

use std::time::Duration;

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth = "0 B", baseline = false)]
fn clean(device: &Device) -> Result<()> {
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaky(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn dies() {
    std::process::abort();
}

#[mem_test(baseline = false, timeout = "2s")]
fn quick() {}

fn wait() {
    std::thread::sleep(Duration::from_millis(700));
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn waits_0() {
    wait();
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn waits_1() {
    wait();
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn waits_2() {
    wait();
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn waits_3() {
    wait();
}
