//! Of `functional/growth/caches.rs`: caches that take hundreds of iterations to fill, buffers that are
//! replaced, and leaks that a run cuts short. Tensors have 4 KiB.

use std::collections::hash_map::Entry::Vacant;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn entry(device: &Device) -> Result<Tensor> {
    Tensor::zeros(1_024, DType::F32, device)
}

/// A generator of numbers below `most`.
fn random() -> impl FnMut(u64) -> u64 {
    let mut state = 9u64;
    move |most| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    }
}

/// A map that is asked for keys at random.
#[mem_test(max_growth = "0 B", baseline = false, cases(keys = [512, 1_024, 16_384]))]
fn map_of_random_keys(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let keys: u64 = trial.case("keys")?;
    let (mut random, mut map) = (random(), HashMap::new());
    trial.iterate(|_| {
        let key = random(keys);
        if let Vacant(place) = map.entry(key) {
            place.insert(entry(&device)?);
        }
        Result::Ok(())
    })
}

/// Small keys are asked for more often.
#[mem_test(max_growth = "0 B", baseline = false)]
fn map_of_skewed_keys(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let (mut random, mut map) = (random(), HashMap::new());
    trial.iterate(|_| {
        // The logarithm of a Zipf key is even.
        let key = 1_024f64.powf(random(1 << 20) as f64 / f64::from(1 << 20)) as u64;
        if let Vacant(place) = map.entry(key) {
            place.insert(entry(&device)?);
        }
        Result::Ok(())
    })
}

/// An LRU cache, or ring, of this many entries that is fed some in each iteration.
fn last(trial: &mut Trial, entries: usize, fed: usize) -> Result<()> {
    let device = trial.device().clone();
    let mut ring = VecDeque::with_capacity(entries + 1);
    trial.iterate(|_| {
        for _ in 0..fed {
            ring.push_back(entry(&device)?);
            if ring.len() > entries {
                ring.pop_front();
            }
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn ring_of_500(trial: &mut Trial) -> Result<()> {
    last(trial, 500, 1)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn lru_of_1000(trial: &mut Trial) -> Result<()> {
    last(trial, 1_000, 1)
}

#[mem_test(max_growth = "0 B", baseline = false, evidence = "60s")]
fn lru_of_8192_fed_32_at_a_time(trial: &mut Trial) -> Result<()> {
    last(trial, 8_192, 32)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn list_flushed_every_200(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut list = Vec::with_capacity(200);
    trial.iterate(|i| {
        if i % 200 == 0 {
            list.clear();
        }
        list.push(entry(&device)?);
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn pool_by_exact_length(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let (mut random, mut pool) = (random(), HashMap::new());
    trial.iterate(|_| {
        let length = 1 + random(512) as usize;
        if let Vacant(place) = pool.entry(length) {
            place.insert(Tensor::zeros(4 * length, DType::F32, &device)?);
        }
        Result::Ok(())
    })
}

/// Entries that live for 50 ms. 1,000 iterations take less.
#[mem_test(max_growth = "0 B", baseline = false, min_time = "1s")]
fn entries_that_expire(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut entries: VecDeque<(Instant, Tensor)> = VecDeque::with_capacity(1 << 17);
    trial.iterate(|_| {
        let now = Instant::now();
        while entries.front().is_some_and(|(born, _)| now - *born > Duration::from_millis(50)) {
            entries.pop_front();
        }
        entries.push_back((now, entry(&device)?));
        Result::Ok(())
    })
}

/// Each block is larger than the one before, until `end` returns an error or panics.
fn accelerates(trial: &mut Trial, end: fn(usize) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let mut kept = HashMap::new();
    trial.iterate(|i| {
        end(i)?;
        let n = 64 + 16 * i;
        kept.insert(n, Tensor::zeros((n, n), DType::F32, &device)?);
        Ok(())
    })
}

/// The context is full after 29 iterations.
#[mem_test(max_growth = "0 B")]
fn accelerates_until_the_context_is_full(trial: &mut Trial) -> anyhow::Result<()> {
    accelerates(trial, |i| {
        anyhow::ensure!(i < 29, "no position is left");
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn accelerates_until_a_panic(trial: &mut Trial) -> anyhow::Result<()> {
    accelerates(trial, |i| {
        assert!(i < 29, "no position is left");
        Ok(())
    })
}

/// There is nothing after the measured iterations.
#[mem_test(max_growth = "0 B", baseline = false, iterations = 5)]
fn accelerates_for_five_iterations(trial: &mut Trial) -> anyhow::Result<()> {
    accelerates(trial, |i| {
        anyhow::ensure!(i < 7, "no position is left");
        Ok(())
    })
}

/// A key-value cache that is not reset, beside masks of growing sizes.
#[mem_test(max_growth = "0 B", baseline = false)]
fn cache_that_is_not_reset_beside_masks(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let (mut kv, mut masks): (Option<Tensor>, Vec<Tensor>) = (None, Vec::new());
    trial.iterate(|i| {
        anyhow::ensure!(7 * (i + 1) <= 256, "no position is left");
        masks.push(Tensor::zeros((4, 7 * i + 4), DType::U8, &device)?);
        for n in [4, 1, 1, 1] {
            let t = Tensor::zeros((1, 2, n, 16), DType::F32, &device)?;
            kv = Some(match kv.take() {
                None => t,
                Some(o) => Tensor::cat(&[&o, &t], 2)?,
            });
        }
        Ok(())
    })
}

/// The body has inputs for 29 iterations, and keeps nothing.
#[mem_test(max_growth = "0 B", baseline = false)]
fn has_no_input_left(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let mut last = None;
    trial.iterate(|i| {
        anyhow::ensure!(i < 29, "no input is left");
        last = Some(Tensor::zeros(1_024 + 256 * (i % 3), DType::F32, &device)?);
        Ok(())
    })
}

/// A tensor that is replaced by a longer one now and then.
#[mem_test(max_growth = "0 B", baseline = false, cases(every = [30, 45, 60]))]
fn replaced_by_a_longer_one(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let every: usize = trial.case("every")?;
    let mut kept = Tensor::zeros(1_536, DType::F32, &device)?;
    trial.iterate(|i| {
        if i % every == every - 1 {
            let more = Tensor::zeros(1_536, DType::F32, &device)?;
            kept = Tensor::cat(&[&kept, &more], 0)?;
        }
        Result::Ok(())
    })
}

// Memory of the host, which only the CPU's leg judges.

#[mem_test(max_growth = "0 B", baseline = false)]
fn losses_in_a_list(trial: &mut Trial) {
    let mut losses: Vec<f32> = Vec::new();
    trial.iterate(|i| losses.push(i as f32));
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn one_tensor_in_a_list(trial: &mut Trial) -> Result<()> {
    let tensor = entry(trial.device())?;
    let mut list = Vec::new();
    trial.iterate(|_| {
        list.push(tensor.clone());
        Result::Ok(())
    })
}
