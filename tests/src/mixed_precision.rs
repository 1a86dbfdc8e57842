//! Mixed precision: weights in f32, a forward and a backward pass in a half type, and a scale of
//! the loss that adapts to the range of the half type.
//!
//! The model is `LAYERS` square layers with relu between them, and its loss is the mean square
//! error in f32. Each step casts the f32 weights (the *masters*), so that their gradients are in
//! f32 again. With f32 as the type the step has no casts, and the same code is the plain step.

use candle_core::{DType, Device, Result, Tensor, Var};

/// Rows of the input.
pub const ROWS: usize = 128;
/// Width of the input and of every layer.
pub const WIDTH: usize = 128;
/// Number of layers.
pub const LAYERS: usize = 4;
/// Bytes of the gradients of all masters, and of the velocities of a trainer with momentum.
pub const VELOCITY_BYTES: usize = LAYERS * WIDTH * WIDTH * 4;

/// The peak of live bytes of a step of [`Trainer`], set-up included.
///
/// `h` is an activation and `w` a weight in the type of the step, `s` and `W` are the same in f32,
/// and `u` is one byte for each float of an activation. The peak is in the backward pass of the
/// first layer, which comes last.
///
/// | memory | f32 | half |
/// |---|---|---|
/// | masters, input, target | L W + h + s | L W + h + s |
/// | casts of the weights | | L w |
/// | products and their relus | (2 L - 1) h | (2 L - 1) h |
/// | output in f32 | | s |
/// | error, its square, three scalars | 2 s + 12 | 2 s + 12 |
/// | gradient of the target | s | s |
/// | gradients of later layers | (L - 1) (3 W + h) | (L - 1) W |
/// | at the first product: gradients of relu, product and input, with u | 8 h + u | 8 h + u |
/// | and that of the weight: zeros, product and sum | 3 W | 3 w |
/// | or at the cast behind it | | 4 h + w + 3 W |
///
/// If the ratio of rows to width is larger, the peak is at the loss instead: 8 s in place of all
/// gradients.
///
/// candle keeps a gradient with the tensors that it was computed from until the next operation uses
/// it: for a weight these are zeros, a product, their sum, and the gradient behind its layer. In
/// f32 no later operation uses the gradient of a weight, so it stays like that. In a half type, the
/// cast uses it.
pub fn step_peak_bytes(dtype: DType) -> usize {
    let size = dtype.size_in_bytes();
    let is_half = size < 4;
    let (h, s) = (ROWS * WIDTH * size, ROWS * WIDTH * 4);
    let (w, wide) = (WIDTH * WIDTH * size, WIDTH * WIDTH * 4);
    let setup = LAYERS * wide + h + s;
    let casts = if is_half { LAYERS * w + s } else { 0 };
    let graph = (2 * LAYERS - 1) * h + casts + 2 * s + 12;
    let later = (LAYERS - 1) * if is_half { wide } else { 3 * wide + h };
    let product = 8 * h + ROWS * WIDTH + 3 * w;
    let first = if is_half { product.max(4 * h + w + 3 * wide) } else { product };
    setup + graph + (s + later + first).max(8 * s)
}

/// The factor of the loss, which keeps small gradients from becoming 0 in a half type. It is halved
/// when a gradient overflows, and doubled after a number of steps without overflow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossScaler {
    scale: f64,
    interval: u32,
    good: u32,
}

impl LossScaler {
    /// Starts with `scale`, and doubles it after `interval` good steps in a row.
    pub fn new(scale: f64, interval: u32) -> Self {
        Self { scale, interval, good: 0 }
    }

    /// The scale of the next step.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Updates the scale at the end of a step. `overflowed` is true if a gradient of the step
    /// overflowed.
    pub fn update(&mut self, overflowed: bool) {
        if overflowed {
            *self = Self { scale: self.scale / 2.0, good: 0, ..*self };
            return;
        }
        self.good += 1;
        if self.good == self.interval {
            *self = Self { scale: self.scale * 2.0, good: 0, ..*self };
        }
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// The masters were updated with their gradients.
    Updated {
        /// The loss before the update.
        loss: f32,
    },
    /// A gradient is infinite or NaN, so the masters did not change.
    Skipped,
}

/// Layers in f32, the type of their passes, one batch, and a scale.
#[derive(Debug)]
pub struct Trainer {
    masters: Vec<Var>,
    input: Tensor,
    target: Tensor,
    dtype: DType,
    rate: f64,
    scaler: LossScaler,
    momentum: Option<f64>,
    /// One for each master once a step has updated them; none without momentum.
    velocities: Vec<Var>,
}

impl Trainer {
    /// Creates the masters and one batch: `L W + h + s` bytes, see [`step_peak_bytes`].
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(dtype: DType, scaler: LossScaler, device: &Device) -> Result<Self> {
        let spread = (6.0 / WIDTH as f32).sqrt();
        let masters = (0..LAYERS)
            .map(|layer| Var::from_tensor(&values((WIDTH, WIDTH), layer, spread, device)?))
            .collect::<Result<_>>()?;
        Ok(Self {
            masters,
            input: values((ROWS, WIDTH), LAYERS, 1.0, device)?.to_dtype(dtype)?,
            target: values((ROWS, WIDTH), LAYERS + 1, 1.0, device)?,
            dtype,
            rate: 0.05,
            scaler,
            momentum: None,
            velocities: Vec::new(),
        })
    }

    /// Updates with a momentum, whose velocities the first update creates: [`VELOCITY_BYTES`].
    #[must_use]
    pub fn with_momentum(self, momentum: f64) -> Self {
        Self { momentum: Some(momentum), ..self }
    }

    /// Trains towards another target, `(ROWS, WIDTH)` of f32.
    #[must_use]
    pub fn with_target(self, target: Tensor) -> Self {
        Self { target, ..self }
    }

    /// Forward and backward in the half type, and an update of the masters in f32 unless a gradient
    /// overflowed.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn step(&mut self) -> Result<Step> {
        self.step_with(|_| ())
    }

    /// The leak: keeps the gradients of each step that overflows, [`VELOCITY_BYTES`] in a step.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn step_keeping_overflows(&mut self, kept: &mut Vec<Tensor>) -> Result<Step> {
        self.step_with(|gradients| kept.extend(gradients))
    }

    fn step_with(&mut self, keep: impl FnOnce(Vec<Tensor>)) -> Result<Step> {
        let (loss, gradients) = self.gradients()?;
        let overflowed = !are_finite(&gradients)?;
        if overflowed {
            keep(gradients);
        } else {
            self.update(gradients)?;
        }
        self.scaler.update(overflowed);
        Ok(if overflowed { Step::Skipped } else { Step::Updated { loss } })
    }

    fn update(&mut self, gradients: Vec<Tensor>) -> Result<()> {
        let (steps, rate) = match self.momentum {
            None => (gradients, self.rate / self.scaler.scale()),
            Some(momentum) => (self.velocities(gradients, momentum)?, self.rate),
        };
        for (master, step) in self.masters.iter().zip(&steps) {
            master.set(&(master.as_detached_tensor() - (step * rate)?)?)?;
        }
        Ok(())
    }

    /// Updates the velocities: the old ones times the momentum, plus gradients without their scale.
    fn velocities(&mut self, gradients: Vec<Tensor>, momentum: f64) -> Result<Vec<Tensor>> {
        for (number, gradient) in gradients.into_iter().enumerate() {
            let gradient = (gradient / self.scaler.scale())?;
            match self.velocities.get(number) {
                Some(old) => old.set(&((old.as_detached_tensor() * momentum)? + gradient)?)?,
                None => self.velocities.push(Var::from_tensor(&gradient)?),
            }
        }
        Ok(self.velocities.iter().map(|velocity| velocity.as_detached_tensor()).collect())
    }

    /// The loss, and the gradient of every master, times the scale.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn gradients(&self) -> Result<(f32, Vec<Tensor>)> {
        let weights = self
            .masters
            .iter()
            .map(|master| master.to_dtype(self.dtype))
            .collect::<Result<Vec<_>>>()?;
        let mut hidden = self.input.matmul(&weights[0])?;
        for weight in &weights[1..] {
            hidden = hidden.relu()?.matmul(weight)?;
        }
        let error = (hidden.to_dtype(DType::F32)? - &self.target)?;
        let loss = error.sqr()?.mean_all()?;
        let mut store = (&loss * self.scaler.scale())?.backward()?;
        let gradients =
            self.masters.iter().filter_map(|master| store.remove(master)).map(|one| one.detach());
        Ok((loss.to_scalar()?, gradients.collect()))
    }

    /// The scale of the next step.
    pub fn scaler(&self) -> LossScaler {
        self.scaler
    }

    /// The input of the batch, `(ROWS, WIDTH)` in the type of the passes.
    pub fn input(&self) -> &Tensor {
        &self.input
    }

    /// The weights in f32.
    pub fn masters(&self) -> &[Var] {
        &self.masters
    }
}

/// Numbers between `-spread` and `spread`. They differ for every `salt`, and are the same on every
/// machine.
fn values(shape: (usize, usize), salt: usize, spread: f32, device: &Device) -> Result<Tensor> {
    let value = |i: usize| ((i * 7919 + salt * 104_729) % 1009) as f32 / 504.0 - 1.0;
    let values: Vec<f32> = (0..shape.0 * shape.1).map(|i| spread * value(i)).collect();
    Tensor::from_vec(values, shape, device)
}

/// One sum per gradient suffices: the sum of finite numbers cannot overflow here, because they are
/// far from the end of f32.
fn are_finite(gradients: &[Tensor]) -> Result<bool> {
    for gradient in gradients {
        if !gradient.abs()?.sum_all()?.to_scalar::<f32>()?.is_finite() {
            return Ok(false);
        }
    }
    Ok(true)
}
