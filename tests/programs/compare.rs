//! Of `functional/compare.rs`: a test whose peak the functional test changes, and a test that does not
//! change.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::mem_test;

/// Holds tensors of 4 KiB, 4 KiB, 8 KiB and so on, as many as the functional test wants.
#[mem_test(max_growth = "0 B")]
fn holds(device: &Device) -> Result<()> {
    let count = std::env::var("COMPARED_TENSORS").ok().and_then(|count| count.parse().ok());
    let count = count.expect("the functional test sets it");
    let mut held = Vec::with_capacity(8);
    held.push(Tensor::zeros(1024, DType::F32, device)?);
    for rows in 1..count {
        held.push(Tensor::ones((rows, 1024), DType::F32, device)?);
    }
    Ok(())
}

#[mem_test(max_growth = "0 B")]
fn steady(device: &Device) -> Result<()> {
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}
