//! The state of optimizers that are created again while the old ones are kept, and copies of
//! variables (candle#2079).

use std::collections::HashMap;

use candle_core::{DType, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarBuilder, VarMap, linear};
use memcheck_runtime::Trial;

use super::graphs::{Layer, WEIGHT, WIDTH};
use super::{Family, HISTORY, Scenario, scenario, small_bytes};

const SOURCE: &str = include_str!("optimizers.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, optimizer_of_every_epoch, "optimizer-recreated", Steady),
    scenario!(SOURCE, snapshots_of_a_weight, "variables-copied", Steady),
    scenario!(SOURCE, checkpoints_in_memory, "variables-copied", Steady),
];

/// A new optimizer for every epoch, because each epoch has another learning rate.
pub mod optimizer_of_every_epoch {
    use super::*;

    /// Two moments of the weight.
    pub fn bytes(_leg: Family) -> u64 {
        2 * WEIGHT
    }

    /// Keeps the old optimizers for a rollback.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut epochs = Vec::with_capacity(HISTORY);
        trial.iterate(|epoch| {
            let params = ParamsAdamW { lr: 1e-3 / (epoch + 1) as f64, ..Default::default() };
            // leaks: optimizer_of_every_epoch
            let mut optimizer = AdamW::new(vec![layer.weight.clone()], params)?;
            optimizer.backward_step(&layer.loss()?)?;
            epochs.push(optimizer);
            Ok(())
        })
    }

    /// Keeps one optimizer and sets its rate.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut optimizer = AdamW::new(vec![layer.weight.clone()], ParamsAdamW::default())?;
        trial.iterate(|epoch| {
            optimizer.set_learning_rate(1e-3 / (epoch + 1) as f64);
            optimizer.backward_step(&layer.loss()?)?;
            Ok(())
        })
    }
}

/// Snapshots of a weight, for averaging or for a rollback.
pub mod snapshots_of_a_weight {
    use super::*;

    /// One copy.
    pub fn bytes(_leg: Family) -> u64 {
        WEIGHT
    }

    /// Keeps all snapshots.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut snapshots = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            // leaks: snapshots_of_a_weight
            snapshots.push(layer.weight.copy()?);
            Ok(())
        })
    }

    /// Keeps the latest snapshot.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut latest = layer.weight.copy()?;
        trial.iterate(|_| {
            latest = layer.weight.copy()?;
            anyhow::Ok(())
        })?;
        drop(latest);
        Ok(())
    }
}

/// The best checkpoint so far, held in memory.
pub mod checkpoints_in_memory {
    use super::*;

    /// The weight and the bias of a linear layer.
    pub fn bytes(leg: Family) -> u64 {
        WEIGHT + small_bytes(leg, WIDTH as u64 * 4)
    }

    /// Keeps every checkpoint that was ever the best. The loss always falls, so that is every one.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps the best checkpoint.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    type Checkpoint = HashMap<String, Tensor>;

    fn run(trial: &mut Trial, before: fn(&mut Vec<Checkpoint>)) -> anyhow::Result<()> {
        let vars = VarMap::new();
        let builder = VarBuilder::from_varmap(&vars, DType::F32, trial.device());
        linear(WIDTH, WIDTH, builder)?;
        let mut best = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            before(&mut best);
            let mut checkpoint = Checkpoint::new();
            for (name, var) in vars.data().lock().expect("not poisoned").iter() {
                // leaks: checkpoints_in_memory
                checkpoint.insert(name.clone(), var.copy()?);
            }
            best.push(checkpoint);
            Ok(())
        })
    }
}
