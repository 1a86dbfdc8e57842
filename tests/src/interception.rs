//! The shared part of the programs of the benchmark `interception`: a forward pass on a GPU, run on
//! request.
//!
//! memcheck is in front of the driver if the program links it, so there are two programs
//! (`examples/interception_*.rs`) that call [`serve`]. It reads lines `bert-base ITERATIONS` from
//! standard input and answers each with a line of nanoseconds. This module must not name memcheck,
//! because the bare program must not link it.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use candle_core::{DType, Device};

use crate::bert::{Bert, Inputs};

/// The name of the workload in requests.
pub const WORKLOAD: &str = "bert-base";

/// Answers requests until standard input ends.
///
/// `live` reads the counted live bytes of a device, or returns `None` in a program that does not
/// count. It is called before and after the weights are loaded, so that the benchmark cannot time
/// probes that do not see the driver's calls.
///
/// # Errors
///
/// When the machine has no GPU, the weights were not seen, a request is malformed, or a forward
/// pass fails.
pub fn serve(live: impl Fn(&Device) -> Option<u64>) -> anyhow::Result<()> {
    let device = Device::new_cuda(0)?;
    let before = live(&device);
    let model = Bert::base(&device, DType::F32)?;
    if let (Some(before), Some(after)) = (before, live(&device)) {
        let weights = model.weight_bytes() as u64;
        ensure!(after >= before + weights, "the probes do not count the driver's calls");
    }
    let inputs = model.inputs(8, 128)?;
    let mut answers = std::io::stdout().lock();
    for request in std::io::stdin().lock().lines() {
        let request = request?;
        let (workload, iterations) = request
            .split_once(' ')
            .with_context(|| format!("`{request}` is not a workload and its iterations"))?;
        ensure!(workload == WORKLOAD, "`{workload}` is not a workload");
        let iterations: u64 = iterations.parse()?;
        // A tenth of the iterations runs first, to warm the caches.
        forward(&model, &inputs, &device, iterations.div_ceil(10))?;
        let elapsed = forward(&model, &inputs, &device, iterations)?;
        writeln!(answers, "{}", elapsed.as_nanos())?;
        answers.flush()?;
    }
    Ok(())
}

/// The time of `iterations` forward passes, until the last kernel has ended.
fn forward(
    model: &Bert,
    inputs: &Inputs,
    device: &Device,
    iterations: u64,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..iterations {
        black_box(model.forward(inputs)?);
    }
    device.synchronize()?;
    Ok(start.elapsed())
}
