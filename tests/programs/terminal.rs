//! Of `functional/terminal.rs`.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaky(trial: &mut Trial) -> Result<()> {
    crate::keep_a_tensor(trial)
}

#[mem_test(baseline = false)]
fn fails(device: &Device) -> Result<()> {
    multiply(device)
}

fn multiply(device: &Device) -> Result<()> {
    let a = Tensor::zeros((2, 3), DType::F32, device)?;
    let b = Tensor::zeros((4, 5), DType::F32, device)?;
    a.matmul(&b)?; // line: product
    Ok(())
}

#[mem_test(baseline = false)]
fn passes() {}

#[mem_test(baseline = false)]
#[ignore]
fn ignored_1() {}

#[mem_test(baseline = false)]
#[ignore]
fn ignored_2() {}

#[mem_test(baseline = false)]
#[ignore]
fn ignored_3() {}

#[mem_test(baseline = false)]
#[ignore]
fn ignored_4() {}
