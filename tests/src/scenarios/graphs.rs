//! A value that outlives its step and keeps the graph that computed it (candle#1241, #3482, #3508).

use candle_core::{DType, Device, Result, Tensor, Var};
use memcheck_runtime::Trial;

use super::{Family, HISTORY, NUMBERS, Scenario, scenario, small_bytes};

const SOURCE: &str = include_str!("graphs.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, total_of_losses, "graph-kept", Steady),
    scenario!(SOURCE, history_of_losses, "graph-kept", Steady),
    scenario!(SOURCE, perplexity_of_every_step, "graph-kept", Steady),
    scenario!(SOURCE, state_between_windows, "graph-kept", Steady),
    scenario!(SOURCE, average_of_weights, "graph-kept", Steady),
];

/// Rows of the input.
pub(super) const ROWS: usize = 16;
/// Width of the input and of the layer.
pub(super) const WIDTH: usize = 64;
/// `(ROWS, WIDTH)` of f32: 4,096 bytes.
pub(super) const ACTIVATION: u64 = (ROWS * WIDTH * 4) as u64;
/// `(WIDTH, WIDTH)` of f32: 16,384 bytes.
pub(super) const WEIGHT: u64 = (WIDTH * WIDTH * 4) as u64;

/// `relu(x W)` and the mean of its square.
pub(super) struct Layer {
    pub(super) input: Tensor,
    pub(super) weight: Var,
}

impl Layer {
    pub(super) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            input: Tensor::ones((ROWS, WIDTH), DType::F32, device)?,
            weight: Var::ones((WIDTH, WIDTH), DType::F32, device)?,
        })
    }

    /// A scalar whose graph holds three activations (product, relu, square) and the scalar of their
    /// sum.
    pub(super) fn loss(&self) -> Result<Tensor> {
        // leaks: total_of_losses, history_of_losses, perplexity_of_every_step
        self.input.matmul(&self.weight)?.relu()?.sqr()?.mean_all()
    }
}

/// The total of all losses so far, for a line in the log.
pub mod total_of_losses {
    use super::*;

    /// Three activations; the scalars of sum, mean and total.
    pub fn bytes(leg: Family) -> u64 {
        3 * ACTIVATION + small_bytes(leg, 3 * 4)
    }

    /// Adds the loss with its graph.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |loss| loss)
    }

    /// Adds the loss without its graph.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |loss| loss.detach())
    }

    fn run(trial: &mut Trial, summand: fn(Tensor) -> Tensor) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut total = Tensor::zeros((), DType::F32, trial.device())?;
        trial.iterate(|_| {
            let loss = tracing::info_span!("forward_pass").in_scope(|| layer.loss())?;
            total = (&total + summand(loss))?;
            Ok(())
        })
    }
}

/// The losses of all steps, for a curve.
pub mod history_of_losses {
    use super::*;

    /// Three activations; the scalars of sum and mean.
    pub fn bytes(leg: Family) -> u64 {
        3 * ACTIVATION + small_bytes(leg, 2 * 4)
    }

    /// Keeps the loss as a tensor.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut history = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            history.push(layer.loss()?);
            Ok(())
        })
    }

    /// Keeps the loss as a number.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut history: Vec<f32> = Vec::with_capacity(NUMBERS);
        trial.iterate(|_| {
            history.push(layer.loss()?.to_scalar()?);
            Ok(())
        })
    }
}

/// A metric of every step, computed from the loss.
pub mod perplexity_of_every_step {
    use super::*;

    /// Three activations; the scalars of sum, mean and its exponential.
    pub fn bytes(leg: Family) -> u64 {
        3 * ACTIVATION + small_bytes(leg, 3 * 4)
    }

    /// Computes the metric from the loss with its graph.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut metrics = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            metrics.push(layer.loss()?.exp()?);
            Ok(())
        })
    }

    /// Computes the metric from the loss as a number.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let layer = Layer::new(trial.device())?;
        let mut metrics: Vec<f32> = Vec::with_capacity(NUMBERS);
        trial.iterate(|_| {
            metrics.push(layer.loss()?.to_scalar::<f32>()?.exp());
            Ok(())
        })
    }
}

/// The hidden state that a recurrent model hands from one window of its text to the next.
pub mod state_between_windows {
    use super::*;

    /// Three activations: product, sum and state.
    pub fn bytes(_leg: Family) -> u64 {
        3 * ACTIVATION
    }

    /// Passes on the state with its graph, which reaches back to the first window.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |state| state)
    }

    /// Passes on the state without its graph, as truncated backpropagation does.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |state| state.detach())
    }

    fn run(trial: &mut Trial, handed_on: fn(Tensor) -> Tensor) -> anyhow::Result<()> {
        let Layer { input, weight } = Layer::new(trial.device())?;
        let mut state = input.zeros_like()?;
        trial.iterate(|_| {
            // leaks: state_between_windows
            let next = (input.matmul(&weight)? + &state)?.tanh()?;
            state = handed_on(next);
            Ok(())
        })
    }
}

/// A moving average of a weight, for evaluation. It involves no loss, but the sum contains a
/// variable and so has a graph.
pub mod average_of_weights {
    use super::*;

    /// Three weights: the old average and the variable, scaled, and their sum.
    pub fn bytes(_leg: Family) -> u64 {
        3 * WEIGHT
    }

    /// Averages the variable.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |weight| weight.as_tensor().clone())
    }

    /// Averages its value.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Var::as_detached_tensor)
    }

    fn run(trial: &mut Trial, value: fn(&Var) -> Tensor) -> anyhow::Result<()> {
        let Layer { weight, .. } = Layer::new(trial.device())?;
        let mut average = weight.zeros_like()?;
        trial.iterate(|_| {
            // leaks: average_of_weights
            average = ((&average * 0.9)? + (value(&weight) * 0.1)?)?;
            Ok(())
        })
    }
}
