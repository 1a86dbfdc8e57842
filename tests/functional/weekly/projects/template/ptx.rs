
#[cfg(OWN_FEATURE)]
#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn launches_its_kernel(trial: &mut Trial) -> anyhow::Result<()> {
    use CANDLE::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
    let device = trial.device().as_cuda_device()?.clone();
    trial.iterate(|_| {
        let kernel = device.get_or_load_custom_func("halve", "kernels", PACKAGE::KERNELS)?;
        let mut out = device.alloc_zeros::<f32>(1000)?;
        let mut launch = kernel.builder();
        launch.arg(&1000_usize).arg(&mut out);
        // SAFETY: the arguments are those of the kernel.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1000))? };
        anyhow::Ok(())
    })
}
