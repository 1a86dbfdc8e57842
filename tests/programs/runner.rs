//! Of `functional/runner.rs` and `functional/slurm.rs`.

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
    crate::keep_a_tensor(trial)
}

#[mem_test(baseline = false)]
fn dies() {
    std::process::abort();
}

#[mem_test(baseline = false, timeout = "2s")]
fn quick() {}

fn hang() {
    crate::write("test", std::process::id());
    std::thread::sleep(Duration::from_secs(600));
}

#[mem_test(baseline = false, timeout = "2s")]
fn hangs() {
    hang();
}

#[mem_test(baseline = false, timeout = "10m")]
fn waits_long() {
    hang();
}

#[mem_test(baseline = false, iterations = 1, warmup = 0, cases(number = [0, 1, 2, 3]))]
fn sleeps(_trial: &mut Trial) {
    std::thread::sleep(Duration::from_millis(700));
}

/// Writes the GPU that the launcher has assigned to it.
#[mem_test(baseline = false, timeout = "3s", cases(number = [1, 2, 3, 4]))]
fn has_a_gpu(trial: &mut Trial) -> anyhow::Result<()> {
    let number: u32 = trial.case("number")?;
    crate::write(&format!("gpu.{number}"), std::env::var("CUDA_VISIBLE_DEVICES")?);
    std::thread::sleep(Duration::from_secs(2));
    Ok(())
}
