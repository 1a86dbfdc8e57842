//! The state of optimizers that are created again while the old ones are kept, and copies of
//! variables (candle#2079).

use std::collections::HashMap;

use candle_core::{DType, Tensor};
use candle_nn::{AdamW, Module, Optimizer, ParamsAdamW, SGD, VarBuilder, VarMap, linear};
use memcheck_runtime::Trial;

use super::graphs::{Layer, WEIGHT, WIDTH};
use super::{Family, HISTORY, Scenario, scenario, small_bytes};

const SOURCE: &str = include_str!("optimizers.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, optimizer_of_every_epoch, "optimizer-recreated", Steady),
    scenario!(SOURCE, trials_of_a_search, "optimizer-recreated", Steady),
    scenario!(SOURCE, phases_of_a_schedule, "optimizer-recreated", Steady),
    scenario!(SOURCE, snapshots_of_a_weight, "variables-copied", Steady),
    scenario!(SOURCE, checkpoints_in_memory, "variables-copied", Steady),
    scenario!(SOURCE, weights_before_every_step, "variables-copied", Steady),
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

/// A search for a learning rate. Each rate is tried with an optimizer of its own.
pub mod trials_of_a_search {
    use super::*;

    /// Two moments of the weight and of the bias.
    pub fn bytes(leg: Family) -> u64 {
        2 * (WEIGHT + small_bytes(leg, WIDTH as u64 * 4))
    }

    /// Keeps the optimizer of every rate, so that any of them can be continued.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps the optimizer of the last rate.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<(f64, AdamW)>)) -> anyhow::Result<()> {
        let vars = VarMap::new();
        let builder = VarBuilder::from_varmap(&vars, DType::F32, trial.device());
        let layer = linear(WIDTH, WIDTH, builder)?;
        let input = Tensor::ones((1, WIDTH), DType::F32, trial.device())?;
        let mut tried = Vec::with_capacity(HISTORY);
        trial.iterate(|attempt| {
            before(&mut tried);
            let rate = 1e-3 / (attempt + 1) as f64;
            // leaks: trials_of_a_search
            let mut optimizer = AdamW::new_lr(vars.all_vars(), rate)?;
            optimizer.backward_step(&layer.forward(&input)?.sqr()?.mean_all()?)?;
            tried.push((rate, optimizer));
            Ok(())
        })
    }
}

/// A schedule whose phases are linked to the phase before.
pub mod phases_of_a_schedule {
    use super::*;

    struct Phase {
        optimizer: AdamW,
        before: Option<Box<Phase>>,
    }

    impl Phase {
        fn begin(layer: &Layer, before: Option<Box<Self>>) -> candle_core::Result<Self> {
            // leaks: phases_of_a_schedule
            let optimizer = AdamW::new(vec![layer.weight.clone()], ParamsAdamW::default())?;
            Ok(Self { optimizer, before })
        }

        /// The number of phases so far.
        fn number(&self) -> usize {
            1 + self.before.as_ref().map_or(0, |before| before.number())
        }
    }

    /// Two moments of the weight.
    pub fn bytes(_leg: Family) -> u64 {
        2 * WEIGHT
    }

    /// Links each phase to the whole phase before it.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |phase| phase)
    }

    /// Forgets the phase before.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| None)
    }

    fn run(
        trial: &mut Trial,
        link: fn(Option<Box<Phase>>) -> Option<Box<Phase>>,
    ) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut latest = None;
        trial.iterate(|_| {
            let mut phase = Phase::begin(&layer, link(latest.take()))?;
            phase.optimizer.set_learning_rate(1e-3 / phase.number() as f64);
            phase.optimizer.backward_step(&layer.loss()?)?;
            latest = Some(Box::new(phase));
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

/// The weight before each step, so that a step that made the loss worse can be undone.
pub mod weights_before_every_step {
    use super::*;

    /// The weight.
    pub fn bytes(_leg: Family) -> u64 {
        WEIGHT
    }

    /// Can undo every step.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Can undo the last step.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<Undo>)) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut optimizer = SGD::new(vec![layer.weight.clone()], 1e-3)?;
        let mut steps = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            before(&mut steps);
            steps.push(Undo::of(&layer.weight)?);
            optimizer.backward_step(&layer.loss()?)?;
            Ok(())
        })
    }

    struct Undo {
        _weight: Tensor,
    }

    impl Undo {
        fn of(weight: &Tensor) -> candle_core::Result<Self> {
            // leaks: weights_before_every_step
            Ok(Self { _weight: weight.copy()? })
        }
    }
}
