//! Of `functional/growth.rs`: blocks of 4 MiB. Each test defines the iterations in which it keeps
//! blocks.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

const MIB: usize = 1 << 20;

fn block(device: &Device, bytes: usize) -> Result<Tensor> {
    Tensor::zeros(bytes, DType::U8, device)
}

/// Pushes a block to `kept` in every iteration for which `keeps` is true.
fn keeps(trial: &mut Trial, keeps: impl Fn(usize) -> bool) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|i| {
        if keeps(i) {
            kept.push(block(&device, 4 * MIB)?);
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_but_not_in_the_last_iteration(trial: &mut Trial) -> Result<()> {
    keeps(trial, |i| i != 11)
}

#[mem_test(max_growth = "0 B", baseline = false, iterations = 100)]
fn leaks_in_99_of_100_iterations(trial: &mut Trial) -> Result<()> {
    keeps(trial, |i| i != 101)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_from_the_sixth_iteration_on(trial: &mut Trial) -> Result<()> {
    keeps(trial, |i| i >= 7)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_in_every_50th_iteration(trial: &mut Trial) -> Result<()> {
    keeps(trial, |i| i % 50 == 20)
}

/// The same, with blocks that are allocated and freed in every iteration.
#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_in_every_50th_iteration_beside_work(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|i| {
        block(&device, MIB)?;
        if i % 50 == 20 {
            kept.push(block(&device, 4 * MIB)?);
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn two_events(trial: &mut Trial) -> Result<()> {
    keeps(trial, |i| i == 3 || i == 8)
}

/// A key-value cache that is enlarged in every 13th iteration, beside outputs of random sizes.
#[mem_test(max_growth = "0 B", baseline = false)]
fn enlarged_beside_random_sizes(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let (mut random, mut cache, mut output) = (7u32, None, None);
    trial.iterate(|i| {
        if i % 13 == 0 {
            cache = Some(block(&device, (1 + i / 13) * MIB / 16)?);
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        output = Some(block(&device, 4_096 + (random >> 11) as usize)?);
        Result::Ok(())
    })
}

/// A leak in every third iteration, and blocks that live for `lives(i)` iterations. All of
/// them have the same size and are allocated on the same line.
fn leaks_beside(trial: &mut Trial, lives: impl Fn(usize) -> usize) -> Result<()> {
    let device = trial.device().clone();
    let mut leaked = Vec::new();
    let mut passing: Vec<(usize, Tensor)> = Vec::new();
    trial.iterate(|i| {
        passing.retain(|(end, _)| *end > i);
        for leaks in [true, false] {
            if leaks && i % 3 != 0 {
                continue;
            }
            let block = block(&device, 4 * MIB)?;
            if leaks { leaked.push(block) } else { passing.push((i + lives(i), block)) }
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false, cases(every = [2, 3, 5, 8]))]
fn leaks_beside_a_list_that_is_flushed(trial: &mut Trial) -> Result<()> {
    let every: usize = trial.case("every")?;
    leaks_beside(trial, |i| every - i % every)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_beside_a_queue(trial: &mut Trial) -> Result<()> {
    leaks_beside(trial, |i| 1 + (i * 7 + i / 3) % 3)
}

#[mem_test(max_growth = "0 B", baseline = false, cases(length = [2, 12, 40]))]
fn ring(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let length: usize = trial.case("length")?;
    let mut ring = std::collections::VecDeque::new();
    trial.iterate(|_| {
        ring.push_back(block(&device, 4 * MIB)?);
        if ring.len() > length {
            ring.pop_front();
        }
        Result::Ok(())
    })
}

/// Blocks that another thread frees 1 to 8 iterations later.
#[mem_test(max_growth = "0 B", baseline = false)]
fn freed_by_another_thread(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut random = 3u32;
    let (give, take) = std::sync::mpsc::channel::<(usize, Option<Tensor>)>();
    let (freed, wait) = std::sync::mpsc::channel::<()>();
    let own_device = device.clone();
    let thread = std::thread::spawn(move || {
        // Binds the context of the device to this thread.
        drop(block(&own_device, 1));
        let _ = freed.send(());
        let mut held: Vec<(usize, Tensor)> = Vec::new();
        let mut now = 0;
        for (end, block) in take {
            match block {
                Some(block) => held.push((end, block)),
                None => {
                    held.retain(|(end, _)| *end > now);
                    now += 1;
                    let _ = freed.send(());
                }
            }
        }
    });
    wait.recv().unwrap();
    let outcome = trial.iterate(|i| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let lives = 1 + (random >> 29) as usize;
        give.send((i + lives, Some(block(&device, 4 * MIB)?))).unwrap();
        give.send((0, None)).unwrap();
        wait.recv().unwrap();
        Result::Ok(())
    });
    drop(give);
    thread.join().unwrap();
    outcome
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn cache_of_16_keys(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut cache = std::collections::HashMap::new();
    let mut random = 7u32;
    trial.iterate(|_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if let std::collections::hash_map::Entry::Vacant(entry) = cache.entry(random >> 28) {
            entry.insert(block(&device, 4 * MIB)?);
        }
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn optimizers_kept(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        for bytes in [262_144, 1_024] {
            // Two moments, and a gradient that is freed.
            kept.push(block(&device, bytes)?);
            kept.push(block(&device, bytes)?);
            block(&device, bytes)?;
        }
        Result::Ok(())
    })
}

/// The body has one input for each iteration that it expects, and fails beyond them.
#[mem_test(max_growth = "0 B", baseline = false)]
fn fails_beyond_its_data(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let inputs: Vec<usize> = (0..trial.warmup() + trial.iterations()).map(|_| MIB).collect();
    let mut last = None;
    trial.iterate(|i| {
        last = Some(block(&device, inputs[i])?);
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn counts_its_calls(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut calls = 0;
    trial.iterate(|_| {
        calls += 1;
        block(&device, MIB).map(|_| ())
    })?;
    assert_eq!(calls, trial.warmup() + trial.iterations());
    Ok(())
}

// Memory of the host, which only the CPU's leg judges.

/// 96 bytes.
#[expect(dead_code, reason = "the nodes only take memory")]
struct Node {
    next: Option<Box<Node>>,
    data: [u8; 88],
}

static LIST: std::sync::Mutex<Option<Box<Node>>> = std::sync::Mutex::new(None);

fn adds_nodes(count: usize) {
    let mut list = LIST.lock().unwrap();
    for _ in 0..count {
        let node = Node { next: list.take(), data: [1; 88] };
        *list = Some(Box::new(node));
    }
}

#[mem_test(max_growth = "0 B", max_retained = "1 TiB", baseline = false, max_iterations = 30)]
fn nodes_in_every_second_iteration(trial: &mut Trial) {
    trial.iterate(|i| adds_nodes(if i % 2 == 0 { 100_000 } else { 0 }));
}

#[mem_test(max_growth = "0 B", max_retained = "1 TiB", baseline = false, max_iterations = 16)]
fn nodes_in_every_iteration(trial: &mut Trial) {
    trial.iterate(|_| adds_nodes(100_000));
}

/// Nodes that the next iteration frees.
#[mem_test(max_growth = "0 B", baseline = false)]
fn nodes_that_are_replaced(trial: &mut Trial) {
    let mut last = Vec::new();
    trial.iterate(|_| last = (0..1_000).map(|_| Box::new([1u8; 96])).collect::<Vec<_>>());
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn embeddings_in_a_list(trial: &mut Trial) {
    let mut kept: Vec<&'static Vec<f32>> = Vec::with_capacity(2_000);
    trial.iterate(|_| kept.push(Box::leak(Box::new(vec![0.5f32; 64]))));
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn appends_for_ever(trial: &mut Trial) {
    let mut logits: Vec<u8> = Vec::new();
    trial.iterate(|_| logits.extend(std::iter::repeat_n(1, 30_000)));
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn appends_up_to_a_bound(trial: &mut Trial) {
    let mut logits: Vec<u8> = Vec::new();
    trial.iterate(|_| {
        if logits.len() < 600_000 {
            logits.extend(std::iter::repeat_n(1, 30_000));
        }
    });
}
