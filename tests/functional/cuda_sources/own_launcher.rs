//! Tests that call launchers in C, with and without host functions for their kernels.

use std::ffi::c_void;

use candle_core::cuda_backend::cudarc::driver::{DevicePtr, DevicePtrMut};
use memcheck_runtime::{Trial, mem_test, register_kernel};
use package::{launch_add_one, launch_mmq_gguf_q4_0, launch_scan};

/// Calls a launcher with a block of zeros and the stream, and reads the block.
fn launched(trial: &Trial, launch: impl Fn(u64, *mut c_void)) -> anyhow::Result<Vec<f32>> {
    let device = trial.device().as_cuda_device()?;
    let stream = device.cuda_stream();
    let mut out = device.alloc_zeros::<f32>(1000)?;
    let (address, guard) = out.device_ptr_mut(&stream);
    launch(address, stream.cu_stream().cast());
    drop(guard);
    Ok(stream.clone_dtoh(&out)?)
}

#[mem_test(baseline = false, max_growth = "0 B", iterations = 2, warmup = 1)]
fn a_launcher_is_called(trial: &mut Trial) -> anyhow::Result<()> {
    trial.iterate(|_| {
        // SAFETY: the arguments are those of the launcher.
        let out = launched(trial, |out, stream| unsafe { launch_add_one(1000, out, stream) })?;
        assert_eq!(out, [0.0; 1000]);
        anyhow::Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B", iterations = 2, warmup = 1)]
fn outputs_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().as_cuda_device()?.clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        let mut out = device.alloc_zeros::<f32>(1000)?;
        let stream = device.cuda_stream();
        let (address, guard) = out.device_ptr_mut(&stream);
        // SAFETY: the arguments are those of the launcher.
        let status = unsafe { launch_scan(0, address, 1000, stream.cu_stream().cast()) };
        drop(guard);
        assert_eq!(status, 0);
        kept.push(out);
        anyhow::Ok(())
    })
}

/// The launcher takes the input as a pointer to const.
#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn inputs_are_known(trial: &mut Trial) -> anyhow::Result<()> {
    let stream = trial.device().as_cuda_device()?.cuda_stream();
    let input = stream.clone_htod(&[2.0_f32; 1000])?;
    let (address, guard) = input.device_ptr(&stream);
    // SAFETY: the arguments are those of the launcher.
    launched(trial, |out, stream| unsafe { drop(launch_scan(address, out, 1000, stream)) })?;
    drop(guard);
    assert_eq!(stream.clone_dtoh(&input)?, [2.0; 1000]);
    Ok(())
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn a_name_of_candle(trial: &mut Trial) -> anyhow::Result<()> {
    // SAFETY: the arguments are those of the launcher.
    launched(trial, |out, _| unsafe { launch_mmq_gguf_q4_0(out, 1.5) }).map(drop)
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn a_host_function_computes_it(trial: &mut Trial) -> anyhow::Result<()> {
    register_kernel("launch_add_one", |launch| {
        let count = launch.value::<u64>(0)? as usize;
        let numbers = launch.read::<f32>(1, count)?;
        let sums: Vec<f32> = numbers.into_iter().map(|number| number + 1.0).collect();
        launch.write(1, &sums)
    });
    // SAFETY: the arguments are those of the launcher.
    let out = launched(trial, |out, stream| unsafe { launch_add_one(1000, out, stream) })?;
    assert_eq!(out, [1.0; 1000]);
    Ok(())
}
