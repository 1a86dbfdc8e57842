//! Gradients that outlive their step.

use std::collections::VecDeque;

use candle_core::Tensor;
use memcheck_runtime::Trial;

use super::graphs::{ACTIVATION, Layer, WEIGHT};
use super::{Family, HISTORY, NUMBERS, Scenario, scenario};

const SOURCE: &str = include_str!("gradients.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, stores_of_every_step, "grad-store-kept", Steady),
    scenario!(SOURCE, gradients_of_micro_batches, "grad-store-kept", Steady),
    scenario!(SOURCE, store_of_every_fourth_step, "grad-store-kept", Periodic),
];

/// Bytes in a gradient store of [`Layer`]: the gradient of the weight, and four activations. candle
/// also computes the gradient of the input and keeps it with the graph that it came from, because
/// the weight is a variable.
const STORE: u64 = WEIGHT + 4 * ACTIVATION;

/// The store of every step, kept to inspect it later.
pub mod stores_of_every_step {
    use super::*;

    /// One store.
    pub fn bytes(_leg: Family) -> u64 {
        STORE
    }

    /// Keeps the store that `backward` returns.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut stores = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            let loss = tracing::info_span!("forward_pass").in_scope(|| layer.loss())?;
            let _backward = tracing::info_span!("backward_pass").entered();
            // leaks: stores_of_every_step
            stores.push(loss.backward()?);
            Ok(())
        })
    }

    /// Keeps the norm as a number.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut norms: Vec<f32> = Vec::with_capacity(NUMBERS);
        trial.iterate(|_| {
            let store = layer.loss()?.backward()?;
            let gradient = store.get(&layer.weight).expect("the weight is a variable");
            norms.push(gradient.sqr()?.sum_all()?.to_scalar()?);
            Ok(())
        })
    }
}

/// Gradients that are accumulated over micro-batches and not cleared afterward.
pub mod gradients_of_micro_batches {
    use super::*;

    /// Micro-batches in a step.
    const MICRO: usize = 3;

    /// One gradient of the weight for each micro-batch.
    pub fn bytes(_leg: Family) -> u64 {
        MICRO as u64 * WEIGHT
    }

    /// Collects the gradients.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Collects the gradients and clears them after the step.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, after_step: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut gradients = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            for _ in 0..MICRO {
                let loss = layer.loss()?;
                // leaks: gradients_of_micro_batches
                let mut store = loss.backward()?;
                gradients.extend(store.remove(&layer.weight));
            }
            after_step(&mut gradients);
            Ok(())
        })
    }
}

/// The store of every fourth step, for a histogram.
pub mod store_of_every_fourth_step {
    use super::*;

    /// Steps from one store to the next.
    const EVERY: usize = 4;

    /// One store in four steps.
    pub fn bytes(_leg: Family) -> u64 {
        STORE / EVERY as u64
    }

    /// Keeps all stores.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, usize::MAX)
    }

    /// Keeps the latest store.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, 1)
    }

    fn run(trial: &mut Trial, most: usize) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut stores = VecDeque::with_capacity(HISTORY);
        trial.iterate(|step| {
            let loss = layer.loss()?;
            // leaks: store_of_every_fourth_step
            let store = loss.backward()?;
            if step % EVERY == 0 {
                stores.push_back(store);
            }
            if stores.len() > most {
                stores.pop_front();
            }
            Ok(())
        })
    }
}
