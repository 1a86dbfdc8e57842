//! Of `functional/growth/further_runs.rs`: leaks that begin late, and bodies that end during the run
//! that decides the growth.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Keeps 4 KiB in every iteration from `first` on, and calls `end` at the beginning of each.
fn leaks(trial: &mut Trial, first: usize, end: impl Fn(usize)) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|i| {
        end(i);
        if i >= first {
            kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_late(trial: &mut Trial) -> Result<()> {
    leaks(trial, 40, |_| {})
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_late_and_panics(trial: &mut Trial) -> Result<()> {
    leaks(trial, 20, |i| assert!(i < 50, "no batch {i}"))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_late_and_aborts(trial: &mut Trial) -> Result<()> {
    leaks(trial, 20, |i| {
        if i == 100 {
            std::process::abort()
        }
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_late_and_exits(trial: &mut Trial) -> Result<()> {
    leaks(trial, 20, |i| {
        if i == 100 {
            std::process::exit(0)
        }
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_at_once_and_aborts(trial: &mut Trial) -> Result<()> {
    leaks(trial, 0, |i| {
        if i == 20 {
            std::process::abort()
        }
    })
}

/// It panics beyond the iterations that were asked for.
#[mem_test(max_growth = "0 B", baseline = false)]
fn clean_and_panics(trial: &mut Trial) -> Result<()> {
    leaks(trial, usize::MAX, |i| assert!(i < 50, "no batch {i}"))
}

/// The cache still fills when no more iterations are allowed.
#[mem_test(max_growth = "0 B", max_rss_growth = "1 GB", max_iterations = 300, baseline = false)]
fn fills_a_cache(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut cache = std::collections::BTreeMap::new();
    let mut key = 1u32;
    trial.iterate(|_| {
        key = key.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if let std::collections::btree_map::Entry::Vacant(entry) = cache.entry(key >> 25) {
            entry.insert(Tensor::zeros(1024, DType::F32, &device)?);
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", max_rss_growth = "1 GB", baseline = false)]
fn leaks_late_with_a_limit_of_resident_memory(trial: &mut Trial) -> Result<()> {
    leaks(trial, 20, |_| {})
}

/// A second GPU, opened in iteration `opened`, on which a tensor is kept in each one from `first` on.
fn second(trial: &mut Trial, opened: usize, first: usize) -> Result<()> {
    let (mut device, mut kept) = (None, Vec::new());
    trial.iterate(|i| {
        if i == opened {
            device = Some(Device::new_cuda(1)?);
        }
        if let Some(device) = device.as_ref().filter(|_| i >= first) {
            kept.push(Tensor::zeros(1024, DType::F32, device)?);
        }
        Result::Ok(())
    })
}

#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn leaks_on_a_gpu_that_is_used_late(trial: &mut Trial) -> Result<()> {
    second(trial, 0, 20)
}

#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
fn leaks_on_a_gpu_that_is_opened_late(trial: &mut Trial) -> Result<()> {
    second(trial, 30, 30)
}
