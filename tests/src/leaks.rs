//! Habits that leak, each beside its fix, over one small layer.
//!
//! The layer is `y = relu(x W)` and its loss the mean of `y²`, x being
//! `(64, 256)` and W `(256, 256)`: every byte that a habit keeps can be named.
//! Each type has `new` for set-up, `leaky_step` and `fixed_step` for an
//! iteration, and constants that say what the leaky step adds for ever:
//! `LEAK_BYTES` in blocks of at least 1 KiB, `LEAK_SCALAR_BYTES`, where it is
//! not 0, in smaller ones. The fixed steps add 0.

use candle_core::{D, DType, Device, Result, Tensor, Var, backprop::GradStore};

/// Rows of the input.
pub const BATCH: usize = 64;
/// Width of the input and of the layer.
pub const WIDTH: usize = 256;
/// One activation `(BATCH, WIDTH)` of f32: 65,536 bytes.
pub const ACTIVATION_BYTES: usize = BATCH * WIDTH * 4;
/// The weight `(WIDTH, WIDTH)` of f32: 262,144 bytes.
pub const WEIGHT_BYTES: usize = WIDTH * WIDTH * 4;

/// How many entries a step may keep before the list itself has to grow.
const HISTORY: usize = 1024;

/// The layer and its input.
struct Layer {
    input: Tensor,
    weight: Var,
}

impl Layer {
    fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            input: Tensor::ones((BATCH, WIDTH), DType::F32, device)?,
            weight: Var::ones((WIDTH, WIDTH), DType::F32, device)?,
        })
    }

    /// A scalar whose graph holds three activations (`x W`, its relu and the
    /// square) and the scalar of the sum.
    fn loss(&self) -> Result<Tensor> {
        self.input.matmul(&self.weight)?.relu()?.sqr()?.mean_all()
    }
}

/// A running total of losses, the first thing that anyone logs.
pub struct RunningLoss {
    layer: Layer,
    total: Tensor,
}

impl RunningLoss {
    /// The graph of one loss: three activations.
    pub const LEAK_BYTES: usize = 3 * ACTIVATION_BYTES;
    /// Sum, mean and total.
    pub const LEAK_SCALAR_BYTES: usize = 12;

    /// Set-up: the layer, and a total of 0.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { layer: Layer::new(device)?, total: Tensor::zeros((), DType::F32, device)? })
    }

    /// Adds the loss as it is: the total then holds the graph of every loss.
    /// Dropping it recurses once for each step, so keep to some thousands.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn leaky_step(&mut self) -> Result<()> {
        self.total = (&self.total + self.layer.loss()?)?;
        Ok(())
    }

    /// Adds the loss without its graph.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn fixed_step(&mut self) -> Result<()> {
        self.total = (&self.total + self.layer.loss()?.detach())?;
        Ok(())
    }
}

/// The gradients of every step, kept to look at their norm later.
pub struct KeptGradients {
    layer: Layer,
    stores: Vec<GradStore>,
    norms: Vec<f32>,
}

impl KeptGradients {
    /// The gradient of the weight, and four activations: candle computes the
    /// gradient of the input too, and keeps it with the graph that it came
    /// from (zeros + gradient of `x W` times the weight, which is a variable).
    pub const LEAK_BYTES: usize = WEIGHT_BYTES + 4 * ACTIVATION_BYTES;

    /// Set-up: the layer.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            layer: Layer::new(device)?,
            stores: Vec::with_capacity(HISTORY),
            norms: Vec::with_capacity(HISTORY),
        })
    }

    /// Keeps the store that `backward` gives.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn leaky_step(&mut self) -> Result<()> {
        self.stores.push(self.layer.loss()?.backward()?);
        Ok(())
    }

    /// Keeps the norm as a number.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn fixed_step(&mut self) -> Result<()> {
        let gradients = self.layer.loss()?.backward()?;
        if let Some(gradient) = gradients.get(&self.layer.weight) {
            self.norms.push(gradient.sqr()?.sum_all()?.sqrt()?.to_scalar()?);
        }
        Ok(())
    }
}

/// Snapshots of a weight, for averaging or for rolling back.
pub struct Snapshots {
    weight: Var,
    all: Vec<Tensor>,
    latest: Option<Tensor>,
}

impl Snapshots {
    /// One copy of the weight.
    pub const LEAK_BYTES: usize = WEIGHT_BYTES;

    /// Set-up: the weight.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        let weight = Layer::new(device)?.weight;
        Ok(Self { weight, all: Vec::with_capacity(HISTORY), latest: None })
    }

    /// Keeps every snapshot.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn leaky_step(&mut self) -> Result<()> {
        self.all.push(self.weight.copy()?);
        Ok(())
    }

    /// Keeps the latest: [`WEIGHT_BYTES`] from the first step on.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn fixed_step(&mut self) -> Result<()> {
        self.latest = Some(self.weight.copy()?);
        Ok(())
    }
}

/// The logits of the last token of every request, batch 1.
pub struct LastLogits {
    hidden: Tensor,
    unembedding: Tensor,
    kept: Vec<Tensor>,
    tokens: Vec<u32>,
}

impl LastLogits {
    /// Tokens in a request.
    pub const SEQ: usize = 32;
    /// Tokens that there are.
    pub const VOCAB: usize = 512;
    /// All the logits of a request, `(1, SEQ, VOCAB)`: a view keeps the whole
    /// storage that it looks at.
    pub const LEAK_BYTES: usize = Self::SEQ * Self::VOCAB * 4;
    /// One row of logits: what has to be kept, if logits are kept at all.
    pub const ROW_BYTES: usize = Self::VOCAB * 4;

    /// Set-up: hidden states `(SEQ, WIDTH)` and an unembedding `(WIDTH, VOCAB)`.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            hidden: Tensor::ones((Self::SEQ, WIDTH), DType::F32, device)?,
            unembedding: Tensor::ones((WIDTH, Self::VOCAB), DType::F32, device)?,
            kept: Vec::with_capacity(HISTORY),
            tokens: Vec::with_capacity(HISTORY),
        })
    }

    /// The last row of new logits, as a view `(1, 1, VOCAB)`.
    fn last(&self) -> Result<Tensor> {
        let logits = self.hidden.matmul(&self.unembedding)?.unsqueeze(0)?;
        logits.narrow(1, Self::SEQ - 1, 1)
    }

    /// Keeps the view.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn leaky_step(&mut self) -> Result<()> {
        self.kept.push(self.last()?);
        Ok(())
    }

    /// Keeps what `contiguous` gives, which leaks as much: one row of a batch
    /// of 1 already is contiguous, so nothing is copied.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn contiguous_step(&mut self) -> Result<()> {
        self.kept.push(self.last()?.contiguous()?);
        Ok(())
    }

    /// Keeps a true copy: [`Self::ROW_BYTES`] a step.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn copied_step(&mut self) -> Result<()> {
        self.kept.push(self.last()?.force_contiguous()?);
        Ok(())
    }

    /// Keeps the token as a number: 0 bytes a step.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn fixed_step(&mut self) -> Result<()> {
        self.tokens.push(self.last()?.argmax(D::Minus1)?.flatten_all()?.get(0)?.to_scalar()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
