//! What the programs of the benchmark `interception` have in common: a forward
//! pass on a GPU, run on request.
//!
//! Whether memcheck stands in front of the driver is decided by whether it is
//! linked, so there are two programs (`examples/interception_*.rs`) that call
//! [`serve`]. It reads lines `bert-base ITERATIONS` from standard input and answers
//! each with a line of nanoseconds. Nothing here names memcheck.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use candle_core::{DType, Device};

use crate::bert::{Bert, Inputs};

/// What is timed, in requests.
pub const WORKLOAD: &str = "bert-base";

/// Answers requests until standard input ends.
///
/// `live` reads the bytes that are believed to be live on a device, `None` if
/// nobody counts. It is asked around the weights, so that probes which see
/// nothing are not timed for nothing.
///
/// # Errors
///
/// When there is no GPU, the weights were not seen, a request cannot be
/// understood, or a forward pass fails.
pub fn serve(live: impl Fn(&Device) -> Option<u64>) -> anyhow::Result<()> {
    let device = Device::new_cuda(0)?;
    let before = live(&device);
    let model = Bert::base(&device, DType::F32)?;
    if let (Some(before), Some(after)) = (before, live(&device)) {
        let weights = model.weight_bytes() as u64;
        ensure!(after >= before + weights, "the driver's calls are not counted");
    }
    let inputs = model.inputs(8, 128)?;
    let mut answers = std::io::stdout().lock();
    for request in std::io::stdin().lock().lines() {
        let request = request?;
        let (workload, iterations) =
            request.split_once(' ').with_context(|| format!("bad request `{request}`"))?;
        ensure!(workload == WORKLOAD, "no workload `{workload}`");
        let iterations: u64 = iterations.parse()?;
        // A tenth of them warms the caches.
        forward(&model, &inputs, &device, iterations.div_ceil(10))?;
        let elapsed = forward(&model, &inputs, &device, iterations)?;
        writeln!(answers, "{}", elapsed.as_nanos())?;
        answers.flush()?;
    }
    Ok(())
}

/// Until the last kernel is done.
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
