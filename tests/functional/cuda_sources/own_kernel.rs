//! Tests that launch a kernel of their own PTX through cudarc.

use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
use memcheck_runtime::{Trial, mem_test};

mod ptx {
    include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
}

fn add_one(
    trial: &Trial,
    kept: &mut Vec<candle_core::cuda_backend::cudarc::driver::CudaSlice<f32>>,
) -> anyhow::Result<()> {
    let device = trial.device().as_cuda_device()?;
    let kernel = device.get_or_load_custom_func("add_one", "kernels", ptx::KERNELS)?;
    let mut out = device.alloc_zeros::<f32>(1000)?;
    let count = 1000_usize;
    let mut launch = kernel.builder();
    launch.arg(&count);
    launch.arg(&mut out);
    // SAFETY: the arguments are those of the kernel.
    unsafe { launch.launch(LaunchConfig::for_num_elems(1000))? };
    kept.push(out);
    Ok(())
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn a_kernel_is_launched(trial: &mut Trial) -> anyhow::Result<()> {
    trial.iterate(|_| add_one(trial, &mut Vec::new()))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn outputs_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let mut kept = Vec::new();
    trial.iterate(|_| add_one(trial, &mut kept))
}
