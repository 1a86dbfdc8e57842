
#[cfg(OWN_FEATURE)]
#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn launches_its_kernel(trial: &mut Trial) -> anyhow::Result<()> {
    use CANDLE::cuda_backend::cudarc::driver::DevicePtrMut;
    let device = DEVICE.as_cuda_device()?.clone();
    trial.iterate(|_| {
        let mut out = device.alloc_zeros::<f32>(1000)?;
        LAUNCH
        anyhow::Ok(())
    })
}
