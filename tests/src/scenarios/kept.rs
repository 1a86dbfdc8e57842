//! Tensors that are simply kept: by a list, a static, a cycle or a channel, from a helper, a pool
//! or a scope.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::Trial;
use rayon::prelude::*;

use super::{Family, HISTORY, NUMBERS, Runs, Scenario, scenario};

const SOURCE: &str = include_str!("kept.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, four_bytes_in_a_list, "tensor-kept", Steady, runs: Runs::OnGpu),
    scenario!(SOURCE, results_in_a_static, "tensor-kept", Steady),
    scenario!(SOURCE, cycle_of_two_nodes, "tensor-kept", Steady),
    scenario!(SOURCE, messages_that_nobody_reads, "tensor-kept", Steady),
    scenario!(SOURCE, list_behind_a_pool, "tensor-kept", Steady),
    scenario!(SOURCE, list_behind_inlined_helpers, "tensor-kept", Steady),
    scenario!(SOURCE, list_in_a_nested_scope, "tensor-kept", Steady),
];

/// Floats of 1 KiB, the smallest block that the host counts.
const KIB: usize = 256;

/// The smallest leak that a device shows.
pub mod four_bytes_in_a_list {
    use super::*;

    /// One f32.
    pub fn bytes(_leg: Family) -> u64 {
        4
    }

    /// Keeps a scalar as a tensor.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut scores = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            // leaks: four_bytes_in_a_list
            scores.push(Tensor::zeros((), DType::F32, &device)?);
            Ok(())
        })
    }

    /// Keeps it as a number.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut scores: Vec<f32> = Vec::with_capacity(NUMBERS);
        trial.iterate(|_| {
            scores.push(Tensor::zeros((), DType::F32, &device)?.to_scalar()?);
            Ok(())
        })
    }
}

/// Results in a static.
pub mod results_in_a_static {
    use super::*;

    static RESULTS: Mutex<Vec<Tensor>> = Mutex::new(Vec::new());

    /// One result.
    pub fn bytes(_leg: Family) -> u64 {
        (KIB * 4) as u64
    }

    /// Never removes a result.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Removes the result at the end of the iteration.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, after: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        trial.iterate(|_| {
            let mut results = RESULTS.lock().unwrap_or_else(PoisonError::into_inner);
            // leaks: results_in_a_static
            results.push(zeros!(KIB, &device)?);
            after(&mut results);
            Ok(())
        })
    }
}

/// Two nodes that hold each other.
pub mod cycle_of_two_nodes {
    use super::*;

    struct Node {
        _value: Tensor,
        other: Mutex<Option<Arc<Node>>>,
    }

    impl Node {
        fn new(device: &Device) -> Result<Arc<Self>> {
            // leaks: cycle_of_two_nodes
            let value = zeros!(KIB, device)?;
            Ok(Arc::new(Self { _value: value, other: Mutex::new(None) }))
        }
    }

    /// The tensors of both nodes.
    pub fn bytes(_leg: Family) -> u64 {
        (2 * KIB * 4) as u64
    }

    /// Keeps the cycle closed.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Opens the cycle before the nodes are dropped.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |node| drop(node.other.lock().expect("not poisoned").take()))
    }

    fn run(trial: &mut Trial, last: fn(&Node)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        trial.iterate(|_| {
            let (one, other) = (Node::new(&device)?, Node::new(&device)?);
            *one.other.lock().expect("not poisoned") = Some(other.clone());
            *other.other.lock().expect("not poisoned") = Some(one.clone());
            last(&one);
            Ok(())
        })
    }
}

/// A channel whose receiver is alive but never receives.
pub mod messages_that_nobody_reads {
    use super::*;

    /// One message.
    pub fn bytes(_leg: Family) -> u64 {
        (2 * KIB * 4) as u64
    }

    /// Only sends.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Receives all pending messages.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |messages| messages.try_iter().for_each(drop))
    }

    fn run(trial: &mut Trial, read: fn(&mpsc::Receiver<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let (sender, messages) = mpsc::channel();
        trial.iterate(|_| {
            // leaks: messages_that_nobody_reads
            sender.send(zeros!(2 * KIB, &device)?)?;
            read(&messages);
            Ok(())
        })
    }
}

/// Jobs in rayon's pool that add their results to one list.
pub mod list_behind_a_pool {
    use super::*;

    const JOBS: usize = 4;

    /// The results of all jobs.
    pub fn bytes(_leg: Family) -> u64 {
        (JOBS * KIB * 4) as u64
    }

    /// Never empties the list.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Empties the list.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, after: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let list = Mutex::new(Vec::with_capacity(HISTORY));
        trial.iterate(|_| {
            (0..JOBS).into_par_iter().try_for_each(|_| -> Result<()> {
                // leaks: list_behind_a_pool
                let result = zeros!(KIB, &device)?;
                list.lock().expect("not poisoned").push(result);
                Ok(())
            })?;
            after(&mut list.lock().expect("not poisoned"));
            Ok(())
        })
    }
}

/// The line is in a helper that is inlined into another helper.
pub mod list_behind_inlined_helpers {
    use super::*;

    /// One tensor.
    pub fn bytes(_leg: Family) -> u64 {
        (3 * KIB * 4) as u64
    }

    // In a debug build only this attribute inlines.
    #[inline(always)]
    fn scores(device: &Device) -> Result<Tensor> {
        // leaks: list_behind_inlined_helpers
        Tensor::zeros((3, KIB), DType::F32, device)
    }

    #[inline(always)]
    fn remember(list: &mut Vec<Tensor>, device: &Device) -> Result<()> {
        list.push(scores(device)?);
        Ok(())
    }

    /// Never empties the list.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut list = Vec::with_capacity(HISTORY);
        trial.iterate(|_| Ok(remember(&mut list, &device)?))
    }

    /// Empties the list in every iteration.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut list = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            list.clear();
            Ok(remember(&mut list, &device)?)
        })
    }
}

/// Nested scopes, with the leak in the innermost one.
pub mod list_in_a_nested_scope {
    use super::*;

    /// One tensor.
    pub fn bytes(_leg: Family) -> u64 {
        (4 * KIB * 4) as u64
    }

    #[tracing::instrument(skip_all)]
    fn sample(list: &mut Vec<Tensor>, device: &Device) -> Result<()> {
        // leaks: list_in_a_nested_scope
        list.push(zeros!(4 * KIB, device)?);
        Ok(())
    }

    /// Never empties the list.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Empties the list at the end of the request.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, end: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut list = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            let _request = tracing::info_span!("request").entered();
            tracing::info_span!("decode").in_scope(|| sample(&mut list, &device))?;
            end(&mut list);
            Ok(())
        })
    }
}
