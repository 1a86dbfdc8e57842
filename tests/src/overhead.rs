//! The shared part of the programs of the benchmark `overhead`: the workloads, and a loop that runs
//! them on request.
//!
//! A program has one global allocator, so there is one program for each allocator
//! (`examples/overhead_*.rs`), and each calls [`serve`]. It reads lines `WORKLOAD ITERATIONS` from
//! standard input and answers each with a line of nanoseconds. This module must not name an
//! allocator.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use candle_core::{DType, Device};
use candle_transformers::models::bert::Config;

use crate::bert::{Bert, Inputs, tiny_config};

/// Bytes of the block that proves that an allocator counts.
const CANARY: usize = 1 << 20;

/// A workload to be timed. An iteration is a forward pass, or, in a loop, the allocation and the
/// free of one block (on each thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// A BERT that spends its time in gemm: width 256, 4 layers, batch 4, 64 tokens.
    Gemm,
    /// A BERT whose time is mostly the overhead of its allocations: width 64, 2 layers, batch 1, 16
    /// tokens.
    Allocations,
    /// Blocks of 64 bytes on one thread.
    Small,
    /// Blocks of 64 bytes on two threads at once.
    SmallTwice,
    /// Blocks of 4 KiB on one thread.
    TensorClass,
}

impl Workload {
    /// All workloads, in the order of the report.
    pub const ALL: [Self; 5] =
        [Self::Gemm, Self::Allocations, Self::Small, Self::SmallTwice, Self::TensorClass];

    /// The name in requests and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemm => "bert-gemm",
            Self::Allocations => "bert-allocations",
            Self::Small => "loop-64B",
            Self::SmallTwice => "loop-64B-2-threads",
            Self::TensorClass => "loop-4KiB",
        }
    }
}

impl FromStr for Workload {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
            .with_context(|| format!("`{name}` is not a workload"))
    }
}

/// Answers requests until standard input ends.
///
/// `live` reads the live bytes that the allocator has counted, or returns `None` if it does not
/// count. It is called before and after a block of 1 MiB is allocated, so that the benchmark cannot
/// time an allocator that should count but does not.
///
/// # Errors
///
/// When the allocator does not see the block, a request is malformed, or a workload fails.
pub fn serve(live: impl Fn() -> Option<u64>) -> anyhow::Result<()> {
    let before = live();
    let canary = black_box(Vec::<u8>::with_capacity(CANARY));
    if let (Some(before), Some(after)) = (before, live()) {
        ensure!(after >= before + CANARY as u64, "the allocator does not count its blocks");
    }
    drop(canary);

    let models = Models::load()?;
    let mut answers = std::io::stdout().lock();
    for request in std::io::stdin().lock().lines() {
        let request = request?;
        let (workload, iterations) = request
            .split_once(' ')
            .with_context(|| format!("`{request}` is not a workload and its iterations"))?;
        let elapsed = models.time(workload.parse()?, iterations.parse()?)?;
        writeln!(answers, "{}", elapsed.as_nanos())?;
        answers.flush()?;
    }
    Ok(())
}

/// The models that the workloads run, and their inputs.
pub struct Models {
    gemm: (Bert, Inputs),
    allocations: (Bert, Inputs),
}

impl Models {
    /// Loads the models on the CPU.
    ///
    /// # Errors
    ///
    /// When a model cannot be loaded.
    pub fn load() -> anyhow::Result<Self> {
        let wide = Config {
            hidden_size: 256,
            num_hidden_layers: 4,
            intermediate_size: 1_024,
            ..tiny_config()
        };
        let (gemm, allocations) =
            (Bert::new(wide, DType::F32, &Device::Cpu)?, Bert::tiny(&Device::Cpu)?);
        let (four, one) = (gemm.inputs(4, 64)?, allocations.inputs(1, 16)?);
        Ok(Self { gemm: (gemm, four), allocations: (allocations, one) })
    }

    /// Times `iterations`, after a tenth of them has warmed the caches.
    ///
    /// # Errors
    ///
    /// When a forward pass fails.
    pub fn time(&self, workload: Workload, iterations: u64) -> anyhow::Result<Duration> {
        self.run(workload, iterations.div_ceil(10))?;
        self.run(workload, iterations)
    }

    fn run(&self, workload: Workload, iterations: u64) -> anyhow::Result<Duration> {
        match workload {
            Workload::Gemm => forward(&self.gemm, iterations),
            Workload::Allocations => forward(&self.allocations, iterations),
            Workload::Small => Ok(blocks::<64>(iterations)),
            Workload::SmallTwice => Ok(on_two_threads(|| churn::<64>(iterations))),
            Workload::TensorClass => Ok(blocks::<4_096>(iterations)),
        }
    }
}

fn forward((model, inputs): &(Bert, Inputs), iterations: u64) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..iterations {
        black_box(model.forward(inputs)?);
    }
    Ok(start.elapsed())
}

fn blocks<const BYTES: usize>(iterations: u64) -> Duration {
    let start = Instant::now();
    churn::<BYTES>(iterations);
    start.elapsed()
}

fn churn<const BYTES: usize>(iterations: u64) {
    for _ in 0..iterations {
        drop(black_box(Vec::<u8>::with_capacity(BYTES)));
    }
}

/// The time from the moment at which both threads run to the end of the later one.
fn on_two_threads(work: impl Fn() + Sync) -> Duration {
    let running = AtomicU32::new(0);
    let one = || {
        running.fetch_add(1, SeqCst);
        // A new thread first uses free blocks that the allocator handed to it from the memory of
        // the spawning thread. Two threads that write to one cache line would slow each other down,
        // so each thread first allocates such blocks and holds them.
        let handed: Vec<_> = (0..64).map(|_| black_box(Vec::<u8>::with_capacity(64))).collect();
        while running.load(SeqCst) < 2 {
            std::hint::spin_loop();
        }
        let start = Instant::now();
        work();
        let end = Instant::now();
        drop(handed);
        (start, end)
    };
    let (here, there) = std::thread::scope(|scope| {
        let other = scope.spawn(one);
        (one(), other.join().expect("the thread does not panic"))
    });
    here.1.max(there.1) - here.0.min(there.0)
}
