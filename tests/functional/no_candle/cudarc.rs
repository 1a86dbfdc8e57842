//! Tests that allocate through cudarc alone.

use cudarc::driver::{CudaContext, DriverError};
use memcheck_runtime::{Trial, mem_test};

/// In a test on a GPU, a buffer of 4,096 bytes, and one of 1,024 in each iteration.
fn buffers(trial: &mut Trial, ordinal: usize, keeps: bool) -> Result<(), DriverError> {
    let stream = CudaContext::new(ordinal)?.default_stream();
    let _weights = stream.alloc_zeros::<f32>(1024)?;
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(stream.alloc_zeros::<f32>(256)?);
        if !keeps {
            kept.clear();
        }
        Ok(())
    })
}

#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn keeps_buffers(trial: &mut Trial) -> Result<(), DriverError> {
    buffers(trial, 0, true)
}

#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn drops_buffers(trial: &mut Trial) -> Result<(), DriverError> {
    buffers(trial, 0, false)
}

#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn keeps_buffers_of_the_second_gpu(trial: &mut Trial) -> Result<(), DriverError> {
    buffers(trial, 1, true)
}

#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn an_iteration_without_an_argument() -> Result<(), DriverError> {
    CudaContext::new(0)?.default_stream().alloc_zeros::<f32>(512)?;
    Ok(())
}

fn vectors(trial: &mut Trial, keeps: bool) {
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(vec![1u8; 2 << 20]);
        if !keeps {
            kept.clear();
        }
    });
}

#[mem_test(max_growth = "1 KiB", baseline = false)]
fn keeps_vectors(trial: &mut Trial) {
    vectors(trial, true);
}

#[mem_test(max_growth = "1 KiB", baseline = false)]
fn drops_vectors(trial: &mut Trial) {
    vectors(trial, false);
}
