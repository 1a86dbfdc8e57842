//! Of `functional/hardware.rs`.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth = "0 B", baseline = false)]
fn small() {}

#[mem_test(max_growth = "0 B", baseline = false)]
fn ten_mebibytes(device: &Device) -> Result<()> {
    Tensor::zeros((10, 1 << 18), DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn a_kernel_in_every_iteration(trial: &mut Trial) -> Result<()> {
    let tensor = Tensor::zeros(1024, DType::F32, trial.device())?;
    trial.iterate(|_| tensor.affine(2.0, 1.0)?.device().synchronize())
}
