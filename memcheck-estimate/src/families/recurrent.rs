//! Decoders with a state of one size, whatever was read.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models as m;
use serde_json::{Map, Value, json};

use super::{Context, Family, Loaded, Model, default, rename};

/// Tokens that mamba2 reads at once.
const CHUNK: usize = 256;

pub(super) const TABLE: &[Family] = &[
    Family::decoder(&["mamba"], mamba).masked_by(0).unbounded().adapted_by(names),
    Family::decoder(&["mamba2"], mamba2).masked_by(0).unbounded().adapted_by(names),
    Family::decoder(&["rwkv5"], |c| rwkv(c, m::rwkv_v5::Model::new, m::rwkv_v5::Model::forward))
        .masked_by(0)
        .unbounded(),
    Family::decoder(&["rwkv6"], |c| rwkv(c, m::rwkv_v6::Model::new, m::rwkv_v6::Model::forward))
        .masked_by(0)
        .unbounded(),
    Family::decoder(&["recurrent_gemma"], recurrent_gemma).unbounded(),
];

/// The transformers library has other names than the paper's code.
fn names(config: &mut Map<String, Value>) {
    for (from, to) in [("hidden_size", "d_model"), ("num_hidden_layers", "n_layer")] {
        rename(config, from, to);
        config.remove(from);
    }
    default(config, "pad_vocab_size_multiple", json!(8));
}

/// A model that reads one token after the other, of the prompt too.
struct Stepwise<M, S> {
    model: M,
    state: S,
    read: fn(&M, &Tensor, &mut S) -> Result<Tensor>,
}

impl<M, S> Model for Stepwise<M, S> {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        let seq = ids.dim(1)?;
        let mut logits = self.step(&ids.narrow(1, 0, 1)?, 0)?;
        for position in 1..seq {
            logits = self.step(&ids.narrow(1, position, 1)?, position)?;
        }
        Ok(logits)
    }

    fn step(&mut self, token: &Tensor, _: usize) -> Result<Tensor> {
        (self.read)(&self.model, token, &mut self.state)
    }
}

fn mamba(context: &Context) -> Loaded {
    use m::mamba::{Config, Model, State};
    let config: Config = context.read()?;
    let model = Model::new(&config, context.weights.clone())?;
    let state = State::new(context.batch, &config, context.dtype, &context.device)?;
    let read =
        |model: &Model, token: &Tensor, state: &mut State| model.forward(&token.squeeze(1)?, state);
    Ok(Box::new(Stepwise { model, state, read }))
}

/// Version 6 has the configuration and the state of version 5.
fn rwkv<M: 'static>(
    context: &Context,
    new: impl FnOnce(&m::rwkv_v5::Config, VarBuilder<'static>) -> Result<M>,
    read: fn(&M, &Tensor, &mut m::rwkv_v5::State) -> Result<Tensor>,
) -> Loaded {
    let config = context.read()?;
    let model = new(&config, context.weights.clone())?;
    let state = m::rwkv_v5::State::new(context.batch, &config, &context.device)?;
    Ok(Box::new(Stepwise { model, state, read }))
}

/// Mamba2, which reads a prompt in chunks.
struct Mamba2 {
    model: m::mamba2::Model,
    state: m::mamba2::State,
}

impl Model for Mamba2 {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        self.model.forward_prefill(ids, &mut self.state, CHUNK)
    }

    fn step(&mut self, token: &Tensor, _: usize) -> Result<Tensor> {
        self.model.forward(&token.squeeze(1)?, &mut self.state)
    }
}

fn mamba2(context: &Context) -> Loaded {
    use m::mamba2::{Config, Model, State};
    let config: Config = context.read()?;
    let model = Model::new(&config, context.weights.clone())?;
    let state = State::new(context.batch, &config, context.dtype, &context.device)?;
    Ok(Box::new(Mamba2 { model, state }))
}

/// RecurrentGemma, whose state is in the model.
struct RecurrentGemma(m::recurrent_gemma::Model);

impl Model for RecurrentGemma {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        self.0.forward(ids, 0)
    }

    fn step(&mut self, token: &Tensor, position: usize) -> Result<Tensor> {
        self.0.forward(token, position)
    }
}

fn recurrent_gemma(context: &Context) -> Loaded {
    let config: m::recurrent_gemma::Config = context.read()?;
    let model = m::recurrent_gemma::Model::new(&config, context.weights.clone())?;
    Ok(Box::new(RecurrentGemma(model)))
}
