//! A small causal transformer that trains: cross-entropy and AdamW in f32.
//!
//! candle's stock models cannot train, because their fused layer norm, softmax and rotary embedding
//! have no backward pass. The operations of these blocks have one, and every parameter gets a
//! gradient.
//!
//! The leak is a common one: a loss that is kept as a tensor keeps its whole graph, which is every
//! activation of the forward pass.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{
    AdamW, Embedding, LayerNorm, Linear, Module, Optimizer, ParamsAdamW, VarBuilder, VarMap,
    embedding, layer_norm_no_bias, linear_no_bias, loss, ops,
};

use crate::token_ids;

/// Sequences in a batch.
pub const BATCH: usize = 8;
/// Tokens in a sequence.
pub const SEQ: usize = 32;
/// Width of a hidden state.
pub const WIDTH: usize = 64;
/// Attention heads.
pub const HEADS: usize = 4;
/// Width of the feed-forward.
pub const FEED_FORWARD: usize = 128;
/// Number of layers.
pub const LAYERS: usize = 2;
/// Size of the vocabulary.
pub const VOCAB: usize = 96;

/// Parameters of a layer: `4 d² + 2 d f + 2 d`.
pub const BLOCK_PARAMETERS: usize = 4 * WIDTH * WIDTH + 2 * WIDTH * FEED_FORWARD + 2 * WIDTH;

/// Parameters: embeddings of tokens and positions, the layers, the final norm and the head.
pub const PARAMETERS: usize = (2 * VOCAB + SEQ + 1) * WIDTH + LAYERS * BLOCK_PARAMETERS;

/// Bytes that one kept loss keeps in blocks of at least 1 KiB.
///
/// | unit | shape | embedding | a layer | final norm and loss |
/// |---|---|---|---|---|
/// | hidden state | b s d | 2 | 20 | 4 |
/// | row | b s 1 | | 12 | 10 |
/// | attention | b h s s | | 6 | |
/// | row of attention | b h s 1 | | 2 | |
/// | feed-forward | b s f | | 2 | |
/// | logits | b s v | | | 4 |
///
/// Of a layer's 20 hidden states, each of the two norms makes 4, the attention 10 and the
/// feed-forward 2. Parameters, ids and the mask are shared between losses, so they are not counted.
pub const KEPT_LOSS_BYTES: usize = {
    let row = BATCH * SEQ;
    ((2 + 4) * row * WIDTH + 10 * row + 4 * row * VOCAB) * 4 + LAYERS * BLOCK_GRAPH_BYTES
};

/// The bytes of one layer in [`KEPT_LOSS_BYTES`].
pub const BLOCK_GRAPH_BYTES: usize = {
    let row = BATCH * SEQ;
    let rows = 12 * row + 2 * row * HEADS;
    (20 * row * WIDTH + rows + 6 * row * HEADS * SEQ + 2 * row * FEED_FORWARD) * 4
};

/// Bytes that one kept loss keeps in smaller blocks: the sum and the mean.
pub const KEPT_LOSS_SCALAR_BYTES: usize = 8;

/// The capacity of the history, so that it does not grow during a test.
const HISTORY: usize = 1024;

/// One layer: attention and feed-forward, each after a norm.
pub(crate) struct Block {
    attention_norm: LayerNorm,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    feed_forward_norm: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Block {
    pub(crate) fn load(builder: &VarBuilder<'_>) -> Result<Self> {
        let square = |name: &str| linear_no_bias(WIDTH, WIDTH, builder.pp(name));
        let norm = |name: &str| layer_norm_no_bias(WIDTH, 1e-5, builder.pp(name));
        Ok(Self {
            attention_norm: norm("attention_norm")?,
            query: square("query")?,
            key: square("key")?,
            value: square("value")?,
            output: square("output")?,
            feed_forward_norm: norm("feed_forward_norm")?,
            up: linear_no_bias(WIDTH, FEED_FORWARD, builder.pp("up"))?,
            down: linear_no_bias(FEED_FORWARD, WIDTH, builder.pp("down"))?,
        })
    }

    fn attention(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let heads = |projected: Tensor| {
            let split = projected.reshape((BATCH, SEQ, HEADS, WIDTH / HEADS))?;
            split.transpose(1, 2)?.contiguous()
        };
        let query = heads(self.query.forward(hidden)?)?;
        let key = heads(self.key.forward(hidden)?)?;
        let value = heads(self.value.forward(hidden)?)?;
        let scores = (query.matmul(&key.t()?)? / ((WIDTH / HEADS) as f64).sqrt())?;
        // `ops::softmax`, not `softmax_last_dim`, because the fused one has no backward pass.
        let weights = ops::softmax(&scores.broadcast_add(mask)?, D::Minus1)?;
        let joined = weights.matmul(&value)?.transpose(1, 2)?.reshape((BATCH, SEQ, WIDTH))?;
        self.output.forward(&joined)
    }

    pub(crate) fn forward(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let hidden = (hidden + self.attention(&self.attention_norm.forward(hidden)?, mask)?)?;
        let inner = self.up.forward(&self.feed_forward_norm.forward(&hidden)?)?.silu()?;
        &hidden + self.down.forward(&inner)?
    }
}

/// All variables, sorted by name. `all_vars` returns them in the order of a hash map, which differs
/// in every process, and the optimizer's calls would have the same random order.
pub(crate) fn in_order(vars: &VarMap) -> Vec<candle_core::Var> {
    let vars = vars.data().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let by_name: std::collections::BTreeMap<_, _> = vars.iter().collect();
    by_name.into_values().cloned().collect()
}

/// The model, its optimizer, one fixed batch, and a history of losses.
pub struct Trainer {
    vars: VarMap,
    tokens: Embedding,
    positions: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
    mask: Tensor,
    ids: Tensor,
    targets: Tensor,
    optimizer: AdamW,
    kept: Vec<Tensor>,
    history: Vec<f32>,
}

impl Trainer {
    /// A model of [`PARAMETERS`] random parameters, two moments of the same size, and a batch of
    /// [`BATCH`] sequences. All of it is set-up.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        let vars = VarMap::new();
        let builder = VarBuilder::from_varmap(&vars, DType::F32, device);
        let blocks = (0..LAYERS)
            .map(|layer| Block::load(&builder.pp(format!("layer.{layer}"))))
            .collect::<Result<Vec<_>>>()?;
        let small = candle_nn::Init::Randn { mean: 0.0, stdev: 0.02 };
        let tokens = embedding(VOCAB, WIDTH, builder.pp("tokens"))?;
        let positions = builder.get_with_hints((SEQ, WIDTH), "positions", small)?;
        let norm = layer_norm_no_bias(WIDTH, 1e-5, builder.pp("norm"))?;
        let head = linear_no_bias(WIDTH, VOCAB, builder.pp("head"))?;
        let optimizer = AdamW::new(in_order(&vars), ParamsAdamW::default())?;
        // The task is to predict the next token, which is always i + 1.
        let next = (1..=BATCH * SEQ).map(|i| (i % VOCAB) as u32).collect::<Vec<_>>();
        Ok(Self {
            vars,
            tokens,
            positions,
            blocks,
            norm,
            head,
            mask: causal_mask(device)?,
            ids: token_ids(BATCH, SEQ, VOCAB, device)?,
            targets: Tensor::from_vec(next, BATCH * SEQ, device)?,
            optimizer,
            kept: Vec::with_capacity(HISTORY),
            history: Vec::with_capacity(HISTORY),
        })
    }

    /// The loss of a forward pass, a scalar that carries its graph.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn loss(&self) -> Result<Tensor> {
        let mut hidden = self.tokens.forward(&self.ids)?.broadcast_add(&self.positions)?;
        for block in &self.blocks {
            hidden = block.forward(&hidden, &self.mask)?;
        }
        let logits = self.head.forward(&self.norm.forward(&hidden)?)?;
        loss::cross_entropy(&logits.reshape((BATCH * SEQ, VOCAB))?, &self.targets)
    }

    /// Forward, backward, update. Returns the loss with its graph. A caller that keeps it keeps
    /// [`KEPT_LOSS_BYTES`]. If it is dropped, no memory remains.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn step(&mut self) -> Result<Tensor> {
        let loss = self.loss()?;
        self.optimizer.backward_step(&loss)?;
        Ok(loss)
    }

    /// The leak: a step whose loss is kept with its graph.
    ///
    /// # Errors
    ///
    /// See [`Self::step`].
    pub fn leaky_step(&mut self) -> Result<()> {
        let loss = self.step()?;
        self.kept.push(loss);
        Ok(())
    }

    /// A step whose loss is kept without its graph, which is the 4 bytes of the scalar.
    ///
    /// # Errors
    ///
    /// See [`Self::step`].
    pub fn detached_step(&mut self) -> Result<()> {
        let loss = self.step()?.detach();
        self.kept.push(loss);
        Ok(())
    }

    /// The fix: a step whose loss is kept as a number. Growth is 0.
    ///
    /// # Errors
    ///
    /// See [`Self::step`].
    pub fn fixed_step(&mut self) -> Result<()> {
        let loss = self.step()?.to_scalar()?;
        self.history.push(loss);
        Ok(())
    }

    /// The losses of every [`Self::fixed_step`] so far.
    pub fn history(&self) -> &[f32] {
        &self.history
    }

    /// The losses of every [`Self::leaky_step`] and [`Self::detached_step`] so far, as tensors.
    pub fn kept(&self) -> &[Tensor] {
        &self.kept
    }

    /// The parameters by name.
    pub fn vars(&self) -> &VarMap {
        &self.vars
    }
}

/// `(seq, seq)` of f32: 0 for the tokens that a token may see, -inf for later ones.
pub(crate) fn causal_mask(device: &Device) -> Result<Tensor> {
    let mask = (0..SEQ * SEQ)
        .map(|i| if i % SEQ > i / SEQ { f32::NEG_INFINITY } else { 0.0 })
        .collect::<Vec<_>>();
    Tensor::from_vec(mask, (SEQ, SEQ), device)
}
