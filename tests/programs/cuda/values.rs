//! Of `functional/values.rs`: a kernel of PTX that a program writes itself, in three variants.

use candle_core::Device;
use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
use memcheck_runtime::{mem_test, register_kernel};

/// Multiplies four numbers by 2.5.
fn scale(name: &str, device: &Device) -> anyhow::Result<Vec<f32>> {
    let ptx = format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry {name}(\n\
         .param .u64 from,\n.param .u64 to,\n.param .f32 factor,\n.param .u32 count\n)\n{{ ret; }}"
    );
    let cuda = device.as_cuda_device()?;
    let function = cuda.get_or_load_custom_func(name, name, &ptx)?;
    let from = cuda.clone_htod(&[1f32, 2., 3., 4.])?;
    let to = cuda.alloc_zeros::<f32>(4)?;
    let mut launch = function.builder();
    launch.arg(&from).arg(&to).arg(&2.5f32).arg(&4u32);
    // SAFETY: the arguments are those of the kernel.
    unsafe { launch.launch(LaunchConfig::for_num_elems(4)) }?;
    Ok(cuda.clone_dtoh(&to)?)
}

#[mem_test(baseline = false, device = "cuda", iterations = 1, warmup = 0)]
fn registered(device: &Device) -> anyhow::Result<()> {
    register_kernel("scale", |launch| {
        assert_eq!(launch.block()[0] * launch.grid()[0], 1024);
        let (factor, count) = (launch.value::<f32>(2)?, launch.value::<u32>(3)?);
        let numbers = launch.read::<f32>(0, count as usize)?;
        let scaled: Vec<f32> = numbers.into_iter().map(|number| number * factor).collect();
        launch.write(1, &scaled)
    });
    anyhow::ensure!(scale("scale", device)? == [2.5, 5., 7.5, 10.]);
    Ok(())
}

#[mem_test(baseline = false, device = "cuda", iterations = 1, warmup = 0)]
fn unregistered(device: &Device) -> anyhow::Result<()> {
    scale("unregistered", device).map(drop)
}

#[mem_test(baseline = false, device = "cuda", iterations = 1, warmup = 0)]
fn refused(device: &Device) -> anyhow::Result<()> {
    register_kernel("refused", |launch| launch.value::<f64>(2).map(drop));
    scale("refused", device).map(drop)
}
