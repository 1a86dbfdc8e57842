//! Compares random operations on a GPU with those on candle's CPU backend. With the feature
//! `simulated`, the GPU is the simulated device.
//!
//! `differential LAUNCHES SECONDS` runs until the device has launched this number of kernels, or
//! until the time is over, and prints the number of launches. The launches of a real GPU are not
//! counted, so that only the time ends the program. The first difference ends it too, after
//! the case was made smaller; with `DIFFERENTIAL_ALL` it only counts, and the first difference of
//! each operation and type is printed. `DIFFERENTIAL_SEED` selects other cases.

mod cases;
mod operations;
mod statistics;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use memcheck_runtime as _;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use cases::{Case, cases};
use operations::OPERATIONS;
use statistics::statistics;

/// Launches of one process. A process computes up to a number of operations, after which values
/// are unknown.
const OF_A_PROCESS: u64 = 200_000;
/// The variable that makes a process a worker.
const WORKER: &str = "DIFFERENTIAL_WORKER";
const SEED: &str = "DIFFERENTIAL_SEED";

fn main() -> ExitCode {
    let number = |at: usize| std::env::args().nth(at).and_then(|text| text.parse::<u64>().ok());
    let (launches, seconds) = (number(1).unwrap_or(20_000), number(2).unwrap_or(60));
    match std::env::var_os(WORKER) {
        Some(_) => work(launches, Duration::from_secs(seconds)),
        None => supervise(launches, seconds),
    }
}

/// Starts one worker after the other.
fn supervise(launches: u64, seconds: u64) -> ExitCode {
    let first: u64 = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (start, mut done) = (Instant::now(), 0);
    for seed in first.. {
        let rest = seconds.saturating_sub(start.elapsed().as_secs());
        if done >= launches || rest == 0 {
            break;
        }
        let part = OF_A_PROCESS.min(launches - done);
        let program = std::env::current_exe().expect("this program has a path");
        let output = Command::new(program)
            .args([part.to_string(), rest.to_string()])
            .env(WORKER, "1")
            .env(SEED, seed.to_string())
            // candle's errors would capture call stacks, which take most of the time.
            .env("RUST_BACKTRACE", "0")
            .stderr(std::process::Stdio::inherit())
            .output()
            .expect("this program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().and_then(|line| line.parse::<u64>().ok());
        let (true, Some(part)) = (output.status.success(), last) else {
            println!("{text}\nseed {seed}: {}", output.status);
            return ExitCode::FAILURE;
        };
        if seed == first {
            println!("{}", text.trim_end());
        }
        done += part;
        println!("{done} launches in {} s", start.elapsed().as_secs());
    }
    ExitCode::SUCCESS
}

/// What became of the cases, by operation.
#[derive(Debug, Default)]
struct Counts {
    equal: u64,
    /// Both devices refused the case.
    refused: u64,
    /// One device refused it, with its message.
    refused_by_one: BTreeMap<String, u64>,
    /// The first difference of each type, with `DIFFERENTIAL_ALL`.
    different: BTreeMap<&'static str, String>,
}

fn work(launches: u64, time: Duration) -> ExitCode {
    // A panic of the CPU backend counts as a refusal.
    std::panic::set_hook(Box::new(|_| {}));
    let device = Device::new_cuda(0).expect("the device opens");
    let seed: u64 = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let start = Instant::now();
    let keep_going = std::env::var_os("DIFFERENTIAL_ALL").is_some();
    let counts = std::cell::RefCell::new(BTreeMap::<&str, Counts>::new());
    for round in 0_u64.. {
        if statistics().launches >= launches || start.elapsed() >= time {
            break;
        }
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&round.to_le_bytes());
        let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let result = runner.run(&cases(), |case| {
            let (name, _) = OPERATIONS[case.operation];
            let mut counts = counts.borrow_mut();
            let counts = counts.entry(name).or_default();
            compare(&case, &device, counts).or_else(|difference| match keep_going {
                true => {
                    let text = || format!("{difference} {case:?}");
                    counts.different.entry(case.dtype.as_str()).or_insert_with(text);
                    Ok(())
                }
                false => Err(TestCaseError::fail(difference)),
            })
        });
        if let Err(error) = result {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    }
    for (name, counts) in counts.borrow().iter() {
        let Counts { equal, refused, refused_by_one, different } = counts;
        println!("{name:<20} {equal:>7} equal {refused:>7} refused {refused_by_one:?}");
        different.values().for_each(|difference| println!("    {difference}"));
    }
    println!("{}", statistics().launches);
    ExitCode::SUCCESS
}

/// Computes a case on both devices.
fn compare(case: &Case, device: &Device, counts: &mut Counts) -> Result<(), String> {
    let (name, compute) = OPERATIONS[case.operation];
    if is_different(name, case) {
        counts.refused += 1;
        return Ok(());
    }
    let before = statistics();
    let on = |device: &Device| {
        std::panic::catch_unwind(|| {
            let result = compute(case, device).map_err(|error| error.to_string())?;
            Ok((result.dtype(), result.dims().to_vec(), flat(&result)))
        })
        .unwrap_or_else(|_| Err("a panic".to_owned()))
    };
    let (there, here) = (on(device), on(&Device::Cpu));
    let after = statistics();
    if after.unknown_reads != before.unknown_reads {
        return Err(format!("{name}: a value is unknown"));
    }
    if after.outside != before.outside {
        return Err(format!("{name}: a kernel reads or writes outside of a block"));
    }
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let ((dtype, dims, there), here) = match (there, here) {
        (Ok(there), Ok(here)) => {
            if (there.0, &there.1) != (here.0, &here.1) {
                return Err(format!(
                    "{name}: {:?} {:?}, on the CPU {:?} {:?}",
                    there.0, there.1, here.0, here.1
                ));
            }
            (there, here.2)
        }
        (Err(_), Err(_)) => {
            counts.refused += 1;
            return Ok(());
        }
        (Err(text), Ok(_)) => {
            *counts.refused_by_one.entry(format!("device: {}", first_line(&text))).or_default() +=
                1;
            return Ok(());
        }
        (Ok(_), Err(text)) => {
            *counts.refused_by_one.entry(format!("CPU: {}", first_line(&text))).or_default() += 1;
            return Ok(());
        }
    };
    let tolerance = tolerance(name, case.dtype, dtype);
    // A row of up to 512 products of numbers up to 4 can cancel out.
    let least = if name == "quantized_matmul" { 2560.0 } else { 1.0 };
    let norm = here.iter().filter(|x| x.is_finite()).fold(least, |norm: f64, x| norm.max(x.abs()));
    for (at, (there, here)) in there.iter().zip(&here).enumerate() {
        let same = there == here || (there.is_nan() && here.is_nan());
        if !same && (there - here).abs() > tolerance * norm.max(here.abs()) {
            return Err(format!("{name} {dims:?}: element {at} is {there}, and {here} on the CPU"));
        }
    }
    counts.equal += 1;
    Ok(())
}

fn flat(tensor: &Tensor) -> Vec<f64> {
    let numbers = || -> candle_core::Result<Vec<f64>> {
        tensor.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
    };
    numbers().unwrap_or_default()
}

/// True where a device and the CPU differ by their sources.
fn is_different(name: &str, case: &Case) -> bool {
    match name {
        // The CPU multiplies with the inverse of the number of elements, which is 0 as an integer.
        "avg_pool2d" | "mean" if !case.dtype.is_float() => true,
        // The CPU adds in 16 bits, whose errors grow with the number of elements.
        "sum" | "mean" | "cumsum" | "softmax_composed" => {
            is_half(case) && case.dims.iter().any(|&dim| dim > 40)
        }
        // It may add the elements of all dims.
        "sum_two" => is_half(case) && case.dims.iter().product::<usize>() > 40,
        // Every id is outside of an empty dim. The CPU accepts it if there is nothing to read.
        "index_select" | "index_add" => case.dims.contains(&0),
        _ => false,
    }
}

fn is_half(case: &Case) -> bool {
    matches!(case.dtype, DType::F16 | DType::BF16)
}

/// The largest error, relative to the largest element of the result or to 1. The devices add in
/// different orders, and round the steps of a function in different places.
fn tolerance(name: &str, input: DType, output: DType) -> f64 {
    match (name, input, output) {
        // The devices quantize the vector in different formats.
        ("quantized_matmul", _, _) => 2e-3,
        ("dequantize", _, _) => 1e-6,
        // A device computes these in f32, or with factors of f32.
        ("rms_norm" | "layer_norm" | "avg_pool2d", DType::F64, _) => 2e-5,
        (_, DType::F16, _) | (_, _, DType::F16) => 1e-2,
        (_, DType::BF16, _) | (_, _, DType::BF16) => 6e-2,
        (_, DType::F32, _) | (_, _, DType::F32) => 2e-5,
        (_, DType::F64, _) => 1e-10,
        _ => 0.0,
    }
}
