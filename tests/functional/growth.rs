//! Programs that cannot be distinguished within ten iterations. The command must follow each of
//! them until its growth is decided.

mod further_runs;

use serde_json::Value;

use crate::fixture::{Project, Run};

/// Blocks of 4 MiB. Each test defines the iterations in which it keeps blocks.
const TESTS: &str = r#"
const MIB: usize = 1 << 20;

fn block(device: &Device, bytes: usize) -> candle_core::Result<Tensor> {
    Tensor::zeros(bytes, DType::U8, device)
}

/// Pushes a block to `kept` in every iteration for which `keeps` is true.
fn keeps(trial: &mut Trial, keeps: impl Fn(usize) -> bool) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|i| {
        if keeps(i) {
            kept.push(block(&device, 4 * MIB)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_but_not_in_the_last_iteration(trial: &mut Trial) -> candle_core::Result<()> {
    keeps(trial, |i| i != 11)
}

#[mem_test(max_growth = "0 B", baseline = false, iterations = 100)]
fn leaks_in_99_of_100_iterations(trial: &mut Trial) -> candle_core::Result<()> {
    keeps(trial, |i| i != 101)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_from_the_sixth_iteration_on(trial: &mut Trial) -> candle_core::Result<()> {
    keeps(trial, |i| i >= 7)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_in_every_50th_iteration(trial: &mut Trial) -> candle_core::Result<()> {
    keeps(trial, |i| i % 50 == 20)
}

/// The same, with blocks that are allocated and freed in every iteration.
#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_in_every_50th_iteration_beside_work(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|i| {
        block(&device, MIB)?;
        if i % 50 == 20 {
            kept.push(block(&device, 4 * MIB)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn two_events(trial: &mut Trial) -> candle_core::Result<()> {
    keeps(trial, |i| i == 3 || i == 8)
}

/// A key-value cache that is enlarged in every 13th iteration, beside outputs of random sizes.
#[mem_test(max_growth = "0 B", baseline = false)]
fn enlarged_beside_random_sizes(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let (mut random, mut cache, mut output) = (7u32, None, None);
    trial.iterate(|i| {
        if i % 13 == 0 {
            cache = Some(block(&device, (1 + i / 13) * MIB / 16)?);
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        output = Some(block(&device, 4_096 + (random >> 11) as usize)?);
        candle_core::Result::Ok(())
    })
}

/// A leak in every third iteration, and blocks that live for `lives(i)` iterations. All of
/// them have the same size and are allocated on the same line.
fn leaks_beside(trial: &mut Trial, lives: impl Fn(usize) -> usize) -> candle_core::Result<()> {
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
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false, cases(every = [2, 3, 5, 8]))]
fn leaks_beside_a_list_that_is_flushed(trial: &mut Trial) -> candle_core::Result<()> {
    let every: usize = trial.case("every")?;
    leaks_beside(trial, |i| every - i % every)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_beside_a_queue(trial: &mut Trial) -> candle_core::Result<()> {
    leaks_beside(trial, |i| 1 + (i * 7 + i / 3) % 3)
}

#[mem_test(max_growth = "0 B", baseline = false, cases(length = [2, 12, 40]))]
fn ring(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let length: usize = trial.case("length")?;
    let mut ring = std::collections::VecDeque::new();
    trial.iterate(|_| {
        ring.push_back(block(&device, 4 * MIB)?);
        if ring.len() > length {
            ring.pop_front();
        }
        candle_core::Result::Ok(())
    })
}

/// Blocks that another thread frees 1 to 8 iterations later.
#[mem_test(max_growth = "0 B", baseline = false)]
fn freed_by_another_thread(trial: &mut Trial) -> candle_core::Result<()> {
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
        candle_core::Result::Ok(())
    });
    drop(give);
    thread.join().unwrap();
    outcome
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn cache_of_16_keys(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut cache = std::collections::HashMap::new();
    let mut random = 7u32;
    trial.iterate(|_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if let std::collections::hash_map::Entry::Vacant(entry) = cache.entry(random >> 28) {
            entry.insert(block(&device, 4 * MIB)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn optimizers_kept(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        for bytes in [262_144, 1_024] {
            // Two moments, and a gradient that is freed.
            kept.push(block(&device, bytes)?);
            kept.push(block(&device, bytes)?);
            block(&device, bytes)?;
        }
        candle_core::Result::Ok(())
    })
}

/// The body has one input for each iteration that it expects, and fails beyond them.
#[mem_test(max_growth = "0 B", baseline = false)]
fn fails_beyond_its_data(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let inputs: Vec<usize> = (0..trial.warmup() + trial.iterations()).map(|_| MIB).collect();
    let mut last = None;
    trial.iterate(|i| {
        last = Some(block(&device, inputs[i])?);
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn counts_its_calls(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut calls = 0;
    trial.iterate(|_| {
        calls += 1;
        block(&device, MIB).map(|_| ())
    })?;
    assert_eq!(calls, trial.warmup() + trial.iterations());
    Ok(())
}
"#;

/// Memory of the host, which only the CPU's leg judges.
const ON_THE_HOST: &str = r#"
/// 96 bytes.
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
"#;

fn run(device: &str) -> Run {
    let project = Project::new(&format!("{TESTS}{ON_THE_HOST}"));
    let arguments = ["run", "--device", device, "--message-format", "json", "--no-ci"];
    project.memcheck(&arguments).exits(100)
}

/// The finding `leak` of a test, which must come first.
#[track_caller]
fn leak(run: &Run, test: &str) -> Value {
    assert_eq!(run.codes(test)[0], "leak", "{test}: {}", run.test(test)["growth"]);
    let line = run.test(test);
    let finding = line["findings"][0].clone();
    let space = finding["space"].as_str().unwrap();
    // The finding, the metrics and the shares of the sites must have the same figure.
    assert_eq!(finding["bytes_per_iteration"], line["metrics"][space]["growth"], "{test}");
    let shares = finding["sites"].as_array().unwrap().iter();
    let shares: u64 = shares.filter_map(|site| site["bytes_per_iteration"].as_u64()).sum();
    assert_eq!(finding["bytes_per_iteration"], shares, "{test}: {}", finding["sites"]);
    finding
}

fn assert_growth_is_decided(run: &Run, host: bool) {
    let mib = 1 << 20;
    for (test, rate) in [
        ("leaks_from_the_sixth_iteration_on", 4 * mib),
        ("leaks_beside_a_queue", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_2", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_3", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_5", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_8", 4 * mib / 3),
        ("leaks_in_every_50th_iteration", 4 * mib / 50),
        ("leaks_in_every_50th_iteration_beside_work", 4 * mib / 50),
        ("enlarged_beside_random_sizes", mib / 16 / 13),
    ] {
        let found = leak(run, test)["bytes_per_iteration"].as_u64().unwrap();
        assert!(found.abs_diff(rate) <= 1, "{test}: {found} is not {rate}");
    }
    for test in ["leaks_but_not_in_the_last_iteration", "leaks_in_99_of_100_iterations"] {
        let found = leak(run, test)["bytes_per_iteration"].as_u64().unwrap();
        assert!((39 * mib / 10..=4 * mib).contains(&found), "{test}: {found}");
    }
    let optimizers = leak(run, "optimizers_kept");
    assert_eq!(optimizers["bytes_per_iteration"], 526_336);
    let sites = optimizers["sites"].as_array().unwrap();
    assert_eq!(sites.iter().filter_map(|site| site["count"].as_u64()).sum::<u64>(), 40);
    for test in [
        "two_events",
        "ring::length_2",
        "ring::length_12",
        "ring::length_40",
        "cache_of_16_keys",
        "freed_by_another_thread",
        "fails_beyond_its_data",
        "counts_its_calls",
    ] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
    }
    // Both events have a remark.
    let events = run.test("two_events")["notes"].to_string();
    assert!(events.contains("8,388,608 B (8.0 MiB) in 2 blocks of"), "{events}");
    assert!(events.contains("at tests/mem.rs:"), "{events}");
    // The leak begins after the measured iterations, and the further iterations must not change any
    // other figure.
    let late = run.test("leaks_in_every_50th_iteration");
    let space = if host { "host" } else { "cuda:0" };
    assert_eq!(late["metrics"][space]["peak_allocated"], 0, "{late}");
    assert_eq!(late["repeat"], Value::Null, "{late}");
    let followed = run.test("ring::length_12")["followed"].clone();
    assert_eq!(followed["decided"], true, "{followed}");
    assert!(followed["iterations"].as_u64().unwrap() > 60, "{followed}");
    if host {
        let found = leak(run, "appends_for_ever")["bytes_per_iteration"].as_u64().unwrap();
        assert!(found.abs_diff(30_000) < 3_000, "{found}");
        assert_eq!(run.codes("appends_up_to_a_bound"), [""; 0]);
        assert_eq!(run.codes("nodes_that_are_replaced"), [""; 0]);
        for (test, rate) in [
            ("nodes_in_every_second_iteration", 4_800_000),
            ("nodes_in_every_iteration", 9_600_000),
            ("embeddings_in_a_list", 280),
        ] {
            let found = leak(run, test);
            assert_eq!(found["space"], "host/small", "{test}");
            assert_eq!(found["bytes_per_iteration"], rate, "{test}");
        }
        let peak = |test| run.test(test)["metrics"]["host/small"]["peak_allocated"].clone();
        assert_eq!(peak("nodes_in_every_iteration"), 115_200_000);
    }
}

#[test]
fn growth_that_ten_iterations_do_not_show_is_decided_on_the_simulated_gpu() {
    assert_growth_is_decided(&run("sim"), false);
}

#[test]
fn growth_that_ten_iterations_do_not_show_is_decided_on_the_cpu() {
    assert_growth_is_decided(&run("cpu"), true);
}

const RETAINED: &str = r#"
use std::sync::{Mutex, OnceLock};

static ONCE: OnceLock<Vec<u8>> = OnceLock::new();
static ALWAYS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[mem_test(baseline = false)]
fn fills_a_lazy_static(_trial: &mut Trial) {
    ONCE.get_or_init(|| vec![1; 168_332]);
}

#[mem_test(baseline = false, max_retained = "64 KiB")]
fn fills_a_lazy_static_above_its_own_limit(_trial: &mut Trial) {
    ONCE.get_or_init(|| vec![1; 168_332]);
}

#[mem_test(baseline = false)]
fn leaves_something_in_every_round(_trial: &mut Trial) {
    println!("to stdout");
    eprintln!("to stderr");
    ALWAYS.lock().unwrap().push(vec![1; 168_332]);
}

#[mem_test(baseline = false)]
fn hands_its_memory_to_threads(trial: &mut Trial) {
    trial.iterate(|i| {
        let block = vec![1u8; 1 << 20];
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(i as u64 % 5));
            drop(block);
        });
    });
}
"#;

#[test]
fn a_second_round_distinguishes_lazy_allocations_from_retained_memory() {
    let project = Project::new(RETAINED);
    let run = project.run(&[]).exits(100);
    for test in ["fills_a_lazy_static_above_its_own_limit", "leaves_something_in_every_round"] {
        assert_eq!(run.codes(test), ["retained"], "{test}");
        assert_eq!(run.test(test)["findings"][0]["figure"], 168_332, "{test}");
    }
    // The second round must print nothing.
    let mut plain = project.cargo_test();
    let output = plain.args(["--", "leaves_something_in_every_round"]).output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    for text in ["to stdout", "to stderr"] {
        assert_eq!(output.matches(text).count(), 1, "{output}");
    }
    let once = run.test("fills_a_lazy_static");
    assert_eq!(once["status"], "passed", "{once}");
    let notes = once["notes"].to_string();
    assert!(notes.contains("168,332 B") && notes.contains("tests/mem.rs:12"), "{notes}");
    let threads = run.test("hands_its_memory_to_threads");
    assert_eq!(threads["status"], "passed", "{threads}");
    // The note names all bytes, not only those above the limit.
    if let Some((_, freed)) = threads["notes"].to_string().split_once("other threads freed ") {
        let bytes = freed.split(" B").next().unwrap().replace(',', "");
        assert!(bytes.parse::<u64>().unwrap() >= 1 << 20, "{threads}");
    }
}
