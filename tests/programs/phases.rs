//! Of `functional/phases.rs`: phases of a body, what is not measured, and counters of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

const KIB: usize = 1 << 10;

fn block(device: &Device, bytes: usize) -> Result<Tensor> {
    Tensor::zeros(bytes, DType::U8, device)
}

/// Weights of 64 KiB, and `work` bytes in each iteration.
fn loads_and_decodes(trial: &Trial, work: usize) -> Result<()> {
    let device = trial.device();
    let _weights = trial.phase("load", || block(device, 64 * KIB))?;
    trial.iterate(|_| {
        trial.phase("decode", || block(device, work))?;
        // In no phase.
        block(device, 2 * work)?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", phases(load <= "64 KiB", decode <= "80 KiB"), baseline = false)]
fn within_its_limits(trial: &mut Trial) -> Result<()> {
    loads_and_decodes(trial, 16 * KIB)
}

#[mem_test(max_growth = "0 B", phases(load <= "64 KiB", decode <= "81919 B"), baseline = false)]
fn above_a_limit(trial: &mut Trial) -> Result<()> {
    loads_and_decodes(trial, 16 * KIB)
}

#[mem_test(phases(decode <= "1 MiB", prefill <= "1 MiB"), baseline = false)]
fn lacks_a_phase(trial: &mut Trial) -> Result<()> {
    loads_and_decodes(trial, 16 * KIB)
}

/// A variable adds 8 KiB to `decode`, which changes no figure of the whole body.
#[mem_test(max_growth = "0 B")]
fn with_a_baseline(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    let more = if std::env::var_os("PHASES_MORE").is_some() { 8 * KIB } else { 0 };
    trial.iterate(|_| {
        trial.phase("prefill", || block(device, 64 * KIB))?;
        trial.phase("decode", || block(device, 16 * KIB + more))?;
        block(device, 16 * KIB - more)?;
        Ok(())
    })
}

/// A tensor of 4 KiB stays from `decode`. That of `prefill` is returned and dropped later.
#[mem_test(baseline = false)]
fn one_phase_keeps_memory(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        let prompt = trial.phase("prefill", || block(device, 64 * KIB))?;
        trial.phase("decode", || {
            kept.push(block(device, 4 * KIB)?);
            Result::Ok(())
        })?;
        drop(prompt);
        Result::Ok(())
    })
}

/// The cache grows by 4 KiB in each of two steps of `decode`, and is dropped in `reset`.
#[mem_test(max_growth = "0 B", baseline = false)]
fn a_cache_that_is_cleared(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    let mut cache = Vec::new();
    trial.iterate(|_| {
        trial.phase("iteration", || {
            for _ in 0..2 {
                let step = trial.phase("decode", || block(device, 4 * KIB))?;
                cache.push(step);
            }
            trial.phase("reset", || cache.clear());
            Result::Ok(())
        })
    })
}

/// A phase that contains all iterations has the peak of the measured ones.
#[mem_test(max_growth = "0 B", baseline = false)]
fn a_phase_around_all_iterations(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    trial.phase("all", || {
        trial.iterate(|i| {
            // Only the iterations beyond the measured ones allocate more.
            block(device, if i < 12 { 4 * KIB } else { 64 * KIB }).map(drop)
        })
    })?;
    trial.phase("after", || block(device, 8 * KIB))?;
    Ok(())
}

/// Two phases that overlap: the first ends while the second is open.
#[mem_test(baseline = false)]
fn phases_of_two_threads(trial: &mut Trial) -> Result<()> {
    let (device, trial) = (trial.device(), &*trial);
    let meeting = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            trial.phase("first", || {
                let block = block(device, 64 * KIB);
                meeting.wait();
                meeting.wait();
                block.map(drop)
            })
        });
        meeting.wait();
        trial.phase("second", || {
            meeting.wait();
            first.join().expect("it does not panic")?;
            block(device, 8 * KIB).map(drop)
        })
    })?;
    trial.iterate(|_| ());
    Ok(())
}

/// The work of an iteration, with what `fixture` keeps.
fn works(trial: &Trial, mut fixture: impl FnMut(&Device) -> Result<()>) -> Result<()> {
    let device = trial.device();
    trial.iterate(|_| {
        fixture(device)?;
        block(device, 16 * KIB)?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", max_retained = "0 B", baseline = false)]
fn fixtures_are_not_measured(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    let fixture = trial.unmeasured(|| block(device, 256 * KIB))?;
    let mut kept = Vec::new();
    works(trial, |device| {
        trial.unmeasured(|| kept.push(block(device, 4 * KIB)));
        Ok(())
    })?;
    std::mem::forget((fixture, kept));
    Ok(())
}

#[mem_test(max_growth = "0 B", max_retained = "0 B", baseline = false)]
fn fixtures_are_measured(trial: &mut Trial) -> Result<()> {
    let fixture = block(trial.device(), 256 * KIB)?;
    // Its buffer would grow too.
    let mut kept = trial.unmeasured(|| Vec::with_capacity(2_000));
    works(trial, |device| {
        kept.push(block(device, 4 * KIB));
        Ok(())
    })?;
    std::mem::forget((fixture, kept));
    Ok(())
}

/// What was counted is freed, even where nothing is counted.
#[mem_test(max_growth = "0 B", baseline = false)]
fn frees_are_measured(trial: &mut Trial) -> Result<()> {
    let weights = block(trial.device(), 64 * KIB)?;
    trial.unmeasured(|| drop(weights));
    works(trial, |_| Ok(()))
}

/// A pool that has these bytes after each iteration.
fn pools(trial: &Trial, bytes: impl Fn(usize) -> usize) {
    let pool = Arc::new(AtomicUsize::new(1_000));
    let counted = Arc::clone(&pool);
    trial.counter("pool", move || counted.load(Relaxed));
    trial.iterate(|i| pool.store(1_000 + bytes(i), Relaxed));
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn a_pool_that_grows(trial: &mut Trial) {
    pools(trial, |i| i * 100);
}

#[mem_test(max_growth = "100 B", baseline = false)]
fn a_pool_that_grows_within_its_limit(trial: &mut Trial) {
    pools(trial, |i| i * 100);
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn a_pool_that_fills(trial: &mut Trial) {
    pools(trial, |i| i.min(5) * 100);
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn a_pool_of_one_size(trial: &mut Trial) {
    pools(trial, |_| 0);
}
