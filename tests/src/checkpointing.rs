//! Gradient checkpointing: a deep transformer that computes its activations twice, so that only
//! those of a few layers are live at a time.
//!
//! candle has no checkpoints. Here, a forward pass without a graph keeps the hidden state at the
//! border of every segment. After that, each segment, from the last to the first, is computed again
//! from its border, which is now a variable. The backward pass goes through that segment alone. It
//! starts from the sum of the segment's output times the gradient that the following segment
//! returned, because the gradient of this sum with respect to the output is that gradient.
//!
//! For `L` layers in segments of `k`, a plain step holds the activations of `L` layers at its peak.
//! A checkpointed step holds those of `k` layers and at most `L / k` borders, which is O(sqrt L)
//! with `k = sqrt L`. Each segment frees its border when it ends, while the gradients of its layers
//! are added. Every step holds all gradients at its end.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{VarBuilder, VarMap};

use crate::training::{
    BATCH, BLOCK_GRAPH_BYTES, BLOCK_PARAMETERS, Block, HEADS, SEQ, WIDTH, causal_mask, in_order,
};

/// Bytes of the gradients of one layer's parameters.
pub const GRADIENT_BYTES: usize = BLOCK_PARAMETERS * 4;

/// Bytes that the backward pass still holds of a finished layer, besides its gradient: the graph,
/// and the gradient of the mask, which candle computes although no one uses it.
pub const ACTIVATION_BYTES: usize = BLOCK_GRAPH_BYTES + BATCH * HEADS * SEQ * SEQ * 4;

/// A stack of layers, a batch of hidden states for it, and its loss: the mean of the squares of the
/// output.
pub struct Deep {
    vars: VarMap,
    blocks: Vec<Block>,
    mask: Tensor,
    input: Tensor,
}

/// The results of a step.
#[derive(Debug)]
pub struct Gradients {
    /// The loss.
    pub loss: f32,
    /// The gradient of each parameter, in the order of their names.
    pub gradients: Vec<Tensor>,
}

impl Deep {
    /// Creates `layers` layers with random weights, and a batch.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(layers: usize, device: &Device) -> Result<Self> {
        let vars = VarMap::new();
        let builder = VarBuilder::from_varmap(&vars, DType::F32, device);
        // All names have the same length, because `in_order` sorts them as texts.
        let blocks = (0..layers)
            .map(|layer| Block::load(&builder.pp(format!("layer.{layer:03}"))))
            .collect::<Result<_>>()?;
        let input = Tensor::randn(0f32, 1f32, (BATCH, SEQ, WIDTH), device)?;
        Ok(Self { vars, blocks, mask: causal_mask(device)?, input })
    }

    /// Forward and backward through all layers at once.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn plain(&self) -> Result<Gradients> {
        let loss = loss(&self.forward(&self.blocks, &self.input)?)?;
        let mut store = loss.backward()?;
        let gradients = in_order(&self.vars).into_iter().filter_map(|var| store.remove(&var));
        Ok(Gradients {
            loss: loss.to_scalar()?,
            gradients: gradients.map(|one| one.detach()).collect(),
        })
    }

    /// The same step in segments of `segment` layers, each computed twice.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn checkpointed(&self, segment: usize) -> Result<Gradients> {
        let mut borders = self.borders(segment)?;
        let vars = in_order(&self.vars);
        let mut by_segment = Vec::with_capacity(borders.len());
        let (mut value, mut behind): (f32, Option<Tensor>) = (0.0, None);
        let parameters = segment * (vars.len() / self.blocks.len());
        let segments = self.blocks.chunks(segment).zip(vars.chunks(parameters));
        for (blocks, vars) in segments.rev() {
            let start = borders.pop().map(|border| Var::from_tensor(&border)).transpose()?;
            let Some(start) = start else { break };
            let output = self.forward(blocks, &start)?;
            let target = match behind.take() {
                Some(gradient) => (output * gradient)?.sum_all()?,
                None => loss(&output)?,
            };
            if by_segment.is_empty() {
                value = target.to_scalar()?;
            }
            let mut store = target.backward()?;
            let gradients = vars.iter().filter_map(|var| store.remove(var));
            by_segment.push(gradients.map(|one| one.detach()).collect::<Vec<_>>());
            behind = store.remove(&start).map(|gradient| gradient.detach());
        }
        let gradients = by_segment.into_iter().rev().flatten().collect();
        Ok(Gradients { loss: value, gradients })
    }

    /// The hidden state in front of every segment, without its graph.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn borders(&self, segment: usize) -> Result<Vec<Tensor>> {
        let mut borders = vec![self.input.clone()];
        let mut hidden = self.input.clone();
        let before_last = self.blocks.len().saturating_sub(1) / segment * segment;
        for (layer, block) in self.blocks[..before_last].iter().enumerate() {
            hidden = block.forward(&hidden, &self.mask)?.detach();
            if (layer + 1) % segment == 0 {
                borders.push(hidden.clone());
            }
        }
        Ok(borders)
    }

    fn forward(&self, blocks: &[Block], hidden: &Tensor) -> Result<Tensor> {
        blocks.iter().try_fold(hidden.clone(), |hidden, block| block.forward(&hidden, &self.mask))
    }
}

fn loss(output: &Tensor) -> Result<Tensor> {
    output.sqr()?.mean_all()
}
