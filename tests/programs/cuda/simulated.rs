//! Of `functional/simulated.rs`.

use candle_core::cuda_backend::cudarc::driver::{result, sys::CUmemAttach_flags};
use candle_core::{DType, Device, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth = "0 B", baseline = false)]
fn on_the_second_gpu(trial: &mut Trial) -> candle_core::Result<()> {
    let second = trial.devices()?[1].clone();
    let first = trial.device().clone();
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        let here = Tensor::zeros(256, DType::F32, &first)?;
        kept.push(here.to_device(&second)?);
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn ten_mebibytes(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros((10, 1 << 18), DType::F32, device)?;
    Ok(())
}

#[mem_test(baseline = false, max_retained = "1 GiB")]
fn kept_on_both(trial: &mut Trial) -> candle_core::Result<()> {
    let second = trial.devices()?[1].clone();
    std::mem::forget(Tensor::zeros((100, 1 << 18), DType::F32, trial.device())?);
    std::mem::forget(Tensor::zeros((300, 1 << 18), DType::F32, &second)?);
    Ok(())
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn opens_the_second_gpu_itself(trial: &mut Trial) -> candle_core::Result<()> {
    let second = Device::new_cuda(1)?;
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(Tensor::zeros(256, DType::F32, &second)?);
        candle_core::Result::Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn pinned_memory_is_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let stream = trial.device().as_cuda_device()?.cuda_stream();
    trial.iterate(|_| {
        // SAFETY: the memory is not read before it is written.
        std::mem::forget(unsafe { stream.context().alloc_pinned::<u8>(5000)? });
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn managed_memory_is_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let stream = trial.device().as_cuda_device()?.cuda_stream();
    trial.iterate(|i| {
        stream.context().bind_to_thread()?;
        let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
        // SAFETY: the memory is never used, and is freed at most once.
        unsafe {
            let kept = result::malloc_managed(6000, flags)?;
            if i % 2 == 0 {
                result::free_sync(kept)?;
            }
        }
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn pinned_memory(trial: &mut Trial) -> anyhow::Result<()> {
    let stream = trial.device().as_cuda_device()?.cuda_stream();
    trial.iterate(|_| {
        // SAFETY: the memory is not read before it is written.
        let pinned = unsafe { stream.context().alloc_pinned::<u8>(5000)? };
        drop(pinned);
        Ok(())
    })
}
