//! Batches of data that outlive their step: in the loader, in a queue, with a worker.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::Trial;

use super::{Family, HISTORY, Scenario, scenario};

const SOURCE: &str = include_str!("batches.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, loader_that_keeps_every_batch, "batches-kept", Steady),
    scenario!(SOURCE, queue_without_a_bound, "batches-kept", Steady),
    scenario!(SOURCE, worker_that_outlives_its_epoch, "batches-kept", Steady),
];

/// Sequences in a batch, and tokens in a sequence.
const BATCH: usize = 8;
const SEQ: usize = 64;

/// Ids of `rows` sequences, `rows SEQ 4` bytes, created from data as a loader does. This is a
/// macro, so that the line of a scenario is the one that calls candle.
#[collapse_debuginfo(yes)]
macro_rules! batch {
    ($rows:expr, $device:expr) => {
        Tensor::from_slice(&[1u32; BATCH * SEQ][..$rows * SEQ], ($rows, SEQ), $device)
    };
}

/// A loader that remembers its batches. The last batch of an epoch is shorter.
pub mod loader_that_keeps_every_batch {
    use super::*;

    /// Sequences in an epoch: three batches and a half.
    const EPOCH: usize = 3 * BATCH + BATCH / 2;

    /// All sequences of an epoch, of u32.
    pub fn bytes(_leg: Family) -> u64 {
        (EPOCH * SEQ * 4) as u64
    }

    /// Keeps all batches.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Clears the list at the end of the epoch.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, end_epoch: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut seen = Vec::with_capacity(HISTORY);
        trial.iterate(|epoch| {
            let _epoch = tracing::info_span!("epoch", epoch).entered();
            for start in (0..EPOCH).step_by(BATCH) {
                let _load = tracing::info_span!("load_batch").entered();
                // leaks: loader_that_keeps_every_batch
                seen.push(batch!(BATCH.min(EPOCH - start), &device)?);
            }
            end_epoch(&mut seen);
            Ok(())
        })
    }
}

/// A loader on another thread that is faster than the training. The oldest batch leaves the queue
/// first, so the kept batches are always young.
pub mod queue_without_a_bound {
    use super::*;

    /// Batches that training takes in an iteration.
    const TAKEN: usize = 2;

    /// The one batch that is loaded beyond those.
    pub fn bytes(_leg: Family) -> u64 {
        (BATCH * SEQ * 4) as u64
    }

    /// Loads three batches for every two that are taken.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, TAKEN + 1)
    }

    /// Loads as many as are taken.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, TAKEN)
    }

    fn run(trial: &mut Trial, loaded: usize) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let (queue, batches) = mpsc::channel();
        trial.iterate(|_| {
            thread::scope(|scope| {
                let loader = scope.spawn(|| -> Result<()> {
                    for _ in 0..loaded {
                        // leaks: queue_without_a_bound
                        queue.send(batch!(BATCH, &device)?).expect("the receiver is live");
                    }
                    Ok(())
                });
                loader.join().expect("the loader does not panic")
            })?;
            for _ in 0..TAKEN {
                let batch = batches.recv()?;
                batch.to_dtype(DType::F32)?;
            }
            Ok(())
        })
    }
}

/// A worker thread for each epoch, with the batch that it prefetched.
pub mod worker_that_outlives_its_epoch {
    use super::*;

    /// One batch.
    pub fn bytes(_leg: Family) -> u64 {
        (BATCH * SEQ * 4) as u64
    }

    /// A worker that lives until its sender is dropped.
    struct Worker {
        more: mpsc::Sender<()>,
        thread: JoinHandle<Result<()>>,
    }

    impl Worker {
        fn start(device: &Device) -> anyhow::Result<Self> {
            let ((more, requests), (ready, prefetched)) = (mpsc::channel(), mpsc::channel());
            let device = device.clone();
            let thread = thread::spawn(move || {
                // leaks: worker_that_outlives_its_epoch
                let mut next = batch!(BATCH, &device)?;
                ready.send(()).expect("the receiver is live");
                while requests.recv().is_ok() {
                    next = batch!(BATCH, &device)?;
                }
                drop(next);
                Ok(())
            });
            prefetched.recv()?;
            Ok(Self { more, thread })
        }
    }

    /// Keeps the workers for ever. Each waits for the next request.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |workers| workers.drain(..).for_each(std::mem::forget))
    }

    /// Ends the workers and waits for them.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |workers| {
            for Worker { more, thread } in workers.drain(..) {
                drop(more);
                thread.join().expect("a worker does not panic").expect("the device has room");
            }
        })
    }

    fn run(trial: &mut Trial, end_epoch: fn(&mut Vec<Worker>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut workers = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            workers.push(Worker::start(&device)?);
            end_epoch(&mut workers);
            Ok(())
        })
    }
}
