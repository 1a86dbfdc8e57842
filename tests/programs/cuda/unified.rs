//! Of `functional/unified.rs`.

use std::path::{Path, PathBuf};

use candle_core::cuda_backend::cudarc::driver::{
    result, sys::CUdevice_attribute_enum as Attribute,
};
use candle_core::{DType, Device, Tensor, safetensors};
use memcheck_runtime::{Trial, mem_test};

const MIB: usize = 1 << 20;

/// Host memory of this many MiB.
fn host(mib: usize) -> Vec<u8> {
    vec![1; mib * MIB]
}

fn on_device(device: &Device, bytes: &[u8]) -> candle_core::Result<Tensor> {
    Tensor::from_slice(bytes, bytes.len(), device)
}

#[mem_test(baseline = false)]
fn the_host_keeps_its_copy(device: &Device) -> candle_core::Result<()> {
    let weights = host(40);
    let copied = on_device(device, &weights)?;
    drop((weights, copied));
    Ok(())
}

#[mem_test(baseline = false)]
fn the_host_drops_each_part_first(device: &Device) -> candle_core::Result<()> {
    let part = |_| on_device(device, &host(10));
    let parts: Vec<Tensor> = (0..4).map(part).collect::<Result<_, _>>()?;
    drop(parts);
    Ok(())
}

/// The host's allocation comes last, and is not refused.
#[mem_test(baseline = false)]
fn the_host_grows_last(device: &Device) -> candle_core::Result<()> {
    let on_device = Tensor::zeros(40 * MIB, DType::U8, device)?;
    let on_host = host(30);
    drop((on_device, on_host));
    Ok(())
}

#[mem_test(baseline = false, fits = "32 MiB")]
fn both_must_fit(device: &Device) -> candle_core::Result<()> {
    let on_device = Tensor::zeros(20 * MIB, DType::U8, device)?;
    let on_host = host(20);
    drop((on_device, on_host));
    Ok(())
}

/// Prints the properties of the machine as the driver reports them.
#[mem_test(baseline = false)]
fn properties(device: &Device) -> anyhow::Result<()> {
    let stream = device.as_cuda_device()?.cuda_stream();
    stream.context().bind_to_thread()?;
    let attribute = |name| stream.context().attribute(name);
    let (before, total) = result::mem_get_info()?;
    let kept = host(8);
    let (with_kept, _) = result::mem_get_info()?;
    drop(kept);
    let (after, _) = result::mem_get_info()?;
    println!(
        "properties: integrated {} pageable {} concurrent {} host {} returned {} total {total}",
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)?,
        before - with_kept,
        before == after,
    );
    Ok(())
}

/// A file of 4 MiB. The tests run several times at once.
fn weights(name: &str) -> anyhow::Result<PathBuf> {
    let name = format!("{}-{name}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let tensors = [("weight", Tensor::zeros(MIB, DType::F32, &Device::Cpu)?)];
    safetensors::save(&tensors.into(), &path)?;
    Ok(path)
}

#[mem_test(baseline = false, iterations = 2, warmup = 0, max_growth = "0 B")]
fn the_file_stays_mapped(trial: &mut Trial) -> anyhow::Result<()> {
    let path = weights("kept.safetensors")?;
    // SAFETY: no other process changes the file.
    let file = unsafe { safetensors::MmapedSafetensors::new(&path)? };
    let weight = file.load("weight", trial.device())?;
    trial.iterate(|_| anyhow::Ok(weight.sqr().map(drop)?))?;
    Ok(std::fs::remove_file(path)?)
}

#[mem_test(baseline = false, iterations = 2, warmup = 0, max_growth = "0 B")]
fn the_file_is_unmapped(trial: &mut Trial) -> anyhow::Result<()> {
    let path = weights("dropped.safetensors")?;
    // SAFETY: no other process changes the file.
    let file = unsafe { safetensors::MmapedSafetensors::new(&path)? };
    let weight = file.load("weight", trial.device())?;
    drop(file);
    trial.iterate(|_| anyhow::Ok(weight.sqr().map(drop)?))?;
    Ok(std::fs::remove_file(path)?)
}

#[mem_test(device = "cuda", baseline = false, max_growth = "0 B", max_host_growth = "0 B")]
fn the_host_leaks(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(2048);
    trial.iterate(|_| {
        kept.push(vec![0_u8; 5000]);
        Tensor::zeros(256, DType::F32, &device).map(drop)
    })
}

#[mem_test(device = "cuda", baseline = false, max_growth = "0 B")]
fn the_host_leaks_without_a_limit(trial: &mut Trial) -> candle_core::Result<()> {
    let mut kept = Vec::with_capacity(2048);
    trial.iterate(|_| {
        kept.push(vec![0_u8; 5000]);
        candle_core::Result::Ok(())
    })
}

#[mem_test(device = "cuda", baseline = false, max_host_growth = "0 B")]
fn the_host_leaks_small_blocks(trial: &mut Trial) -> candle_core::Result<()> {
    let mut kept = Vec::with_capacity(2048);
    trial.iterate(|_| {
        kept.push(Box::new([0_u8; 24]));
        candle_core::Result::Ok(())
    })
}

#[mem_test(device = "cuda", baseline = false, max_host_growth = "0 B", max_host_peak = "1 MiB")]
fn the_host_is_clean(trial: &mut Trial) -> candle_core::Result<()> {
    let weight = Tensor::zeros((64, 64), DType::F32, trial.device())?;
    trial.iterate(|_| {
        let row = weight.matmul(&weight)?.get(0)?.to_vec1::<f32>()?;
        drop(row);
        candle_core::Result::Ok(())
    })
}

#[mem_test(device = "cuda", baseline = false, max_host_peak = "1 MiB")]
fn the_peak_of_the_host_is_high(device: &Device) -> candle_core::Result<()> {
    drop(host(2));
    Tensor::zeros(256, DType::F32, device).map(drop)
}
