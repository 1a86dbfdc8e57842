//! Habits that leak, and the fix of each, over one small layer.
//!
//! The layer is `y = relu(x W)` and its loss is the mean of `y²`, with x `(64, 256)` and W
//! `(256, 256)`, so that every kept byte has a formula. Each type has `new` for set-up,
//! `leaky_step` and `fixed_step` for an iteration, and constants for the bytes that the leaky step
//! keeps for ever: `LEAK_BYTES` in blocks of at least 1 KiB, and `LEAK_SCALAR_BYTES` in smaller
//! blocks if there are any. The fixed steps keep 0 more bytes.

use candle_core::{D, DType, Device, Result, Tensor, Var, backprop::GradStore};

/// Rows of the input.
pub const BATCH: usize = 64;
/// Width of the input and of the layer.
pub const WIDTH: usize = 256;
/// One activation `(BATCH, WIDTH)` of f32: 65,536 bytes.
pub const ACTIVATION_BYTES: usize = BATCH * WIDTH * 4;
/// The weight `(WIDTH, WIDTH)` of f32: 262,144 bytes.
pub const WEIGHT_BYTES: usize = WIDTH * WIDTH * 4;

/// The capacity of the lists, so that they do not grow during a test.
const HISTORY: usize = 1024;

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

    /// A scalar whose graph holds three activations (`x W`, its relu and the square) and the scalar
    /// of the sum.
    fn loss(&self) -> Result<Tensor> {
        self.input.matmul(&self.weight)?.relu()?.sqr()?.mean_all()
    }
}

/// A running total of losses, as a log often prints it.
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

    /// Adds the loss with its graph, so the total holds the graph of every loss. Dropping the total
    /// recurses once for each step, so a test should do at most some thousands of steps.
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

    /// The total of all steps so far, a scalar.
    pub fn total(&self) -> &Tensor {
        &self.total
    }
}

/// The gradients of every step, kept to compute their norm later.
pub struct KeptGradients {
    layer: Layer,
    stores: Vec<GradStore>,
    norms: Vec<f32>,
}

impl KeptGradients {
    /// The gradient of the weight, and four activations. candle also computes the gradient of the
    /// input and keeps it with the graph that it came from (zeros + gradient of `x W` times the
    /// weight), because the weight is a variable.
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

    /// Keeps the store that `backward` returns.
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

    /// The input of the layer, `(BATCH, WIDTH)`.
    pub fn input(&self) -> &Tensor {
        &self.layer.input
    }

    /// The store of every [`Self::leaky_step`] so far.
    pub fn stores(&self) -> &[GradStore] {
        &self.stores
    }

    /// The norm of every [`Self::fixed_step`] so far.
    pub fn norms(&self) -> &[f32] {
        &self.norms
    }
}

/// Snapshots of a weight, for averaging or for a rollback.
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

    /// Keeps only the latest snapshot: [`WEIGHT_BYTES`] from the first step on.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn fixed_step(&mut self) -> Result<()> {
        self.latest = Some(self.weight.copy()?);
        Ok(())
    }

    /// The snapshot of every [`Self::leaky_step`] so far.
    pub fn all(&self) -> &[Tensor] {
        &self.all
    }

    /// The snapshot of the last [`Self::fixed_step`].
    pub fn latest(&self) -> Option<&Tensor> {
        self.latest.as_ref()
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
    /// Size of the vocabulary.
    pub const VOCAB: usize = 512;
    /// All logits of a request, `(1, SEQ, VOCAB)`, because a view keeps its whole storage.
    pub const LEAK_BYTES: usize = Self::SEQ * Self::VOCAB * 4;
    /// One row of logits, the least that must be kept if logits are kept as a tensor.
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

    /// Keeps the result of `contiguous`, which leaks as much. One row of a batch of 1 is already
    /// contiguous, so candle makes no copy.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn contiguous_step(&mut self) -> Result<()> {
        self.kept.push(self.last()?.contiguous()?);
        Ok(())
    }

    /// Keeps a true copy: [`Self::ROW_BYTES`] per step.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn copied_step(&mut self) -> Result<()> {
        self.kept.push(self.last()?.force_contiguous()?);
        Ok(())
    }

    /// Keeps the token as a number: 0 bytes per step.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn fixed_step(&mut self) -> Result<()> {
        self.tokens.push(self.last()?.argmax(D::Minus1)?.flatten_all()?.get(0)?.to_scalar()?);
        Ok(())
    }

    /// The logits of every step so far, except those of [`Self::fixed_step`].
    pub fn kept(&self) -> &[Tensor] {
        &self.kept
    }

    /// The token of every [`Self::fixed_step`] so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}
