//! Decoders whose state has the same size after any number of tokens.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models as m;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::adapted::{default, rename};
use super::{Context, Loaded, Model, ModelFamily, defaults};

/// Number of tokens that Mamba 2 reads at once.
const CHUNK: usize = 256;

pub(super) const TABLE: &[ModelFamily] = &[
    ModelFamily::decoder(&["mamba"], mamba).masked_by(0).unbounded().adapted_by(rename_keys),
    ModelFamily::decoder(&["mamba2"], mamba2).masked_by(0).unbounded().adapted_by(rename_keys),
    ModelFamily::decoder(&["rwkv5"], |c| {
        rwkv(c, m::rwkv_v5::Model::new, m::rwkv_v5::Model::forward)
    })
    .masked_by(0)
    .unbounded()
    .adapted_by(attention_width)
    .with_defaults(defaults::RWKV),
    ModelFamily::decoder(&["rwkv6"], |c| {
        rwkv(c, m::rwkv_v6::Model::new, m::rwkv_v6::Model::forward)
    })
    .masked_by(0)
    .unbounded()
    .adapted_by(attention_width)
    .with_defaults(defaults::RWKV),
    #[cfg(not(candle_before = "0.10"))]
    ModelFamily {
        absent: &["blocks.0.att.v0", "blocks.0.att.v1", "blocks.0.att.v2"],
        ..ModelFamily::decoder(&["rwkv7"], rwkv7)
    }
    .masked_by(0)
    .unbounded()
    .one_sequence()
    .adapted_by(|config| rename(config, "head_dim", "head_size"))
    .with_defaults(defaults::RWKV7),
    ModelFamily::decoder(&["recurrent_gemma"], recurrent_gemma)
        .unbounded()
        .with_defaults(defaults::RECURRENT_GEMMA),
];

/// Renames the keys of Hugging Face's transformers to those of the paper's code.
fn rename_keys(config: &mut Map<String, Value>) {
    for (from, to) in [("hidden_size", "d_model"), ("num_hidden_layers", "n_layer")] {
        rename(config, from, to);
        config.remove(from);
    }
    default(config, "pad_vocab_size_multiple", json!(8));
}

/// Sets the width of the attention to that of the model, if it is missing.
fn attention_width(config: &mut Map<String, Value>) {
    rename(config, "hidden_size", "attention_hidden_size");
}

/// A model that reads one token after the other, also of the prompt.
struct Stepwise<M, S> {
    model: M,
    state: S,
    read: fn(&M, &Tensor, &mut S) -> Result<Tensor>,
    new_state: NewState<S>,
}

/// Creates the state of a request.
type NewState<S> = Box<dyn Fn() -> Result<S>>;

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

    fn clear(&mut self) -> Result<bool> {
        self.state = (self.new_state)()?;
        Ok(true)
    }
}

fn mamba(context: &Context) -> Loaded {
    use m::mamba::{Config, Model, State};
    let config: Config = context.read()?;
    let model = Model::new(&config, context.weights.clone())?;
    let (batch, dtype, device) = (context.batch, context.dtype, context.device.clone());
    let new_state: NewState<State> = Box::new(move || State::new(batch, &config, dtype, &device));
    let read =
        |model: &Model, token: &Tensor, state: &mut State| model.forward(&token.squeeze(1)?, state);
    Ok(Box::new(Stepwise { model, state: new_state()?, read, new_state }))
}

/// Loads RWKV 5 or 6. Version 6 uses the configuration and the state of version 5.
fn rwkv<M: 'static>(
    context: &Context,
    new: impl FnOnce(&m::rwkv_v5::Config, VarBuilder<'static>) -> Result<M>,
    read: fn(&M, &Tensor, &mut m::rwkv_v5::State) -> Result<Tensor>,
) -> Loaded {
    use m::rwkv_v5::State;
    let config = context.read()?;
    let model = new(&config, context.weights.clone())?;
    let (batch, device) = (context.batch, context.device.clone());
    let new_state: NewState<State> = Box::new(move || State::new(batch, &config, &device));
    Ok(Box::new(Stepwise { model, state: new_state()?, read, new_state }))
}

/// RWKV 7, which needs the ids on the host as well as on the device. Its state of the prompt has
/// room for one sequence only.
#[cfg(not(candle_before = "0.10"))]
struct Rwkv7 {
    model: m::rwkv_v7::Model,
    state: m::rwkv_v7::State,
    new_state: NewState<m::rwkv_v7::State>,
}

#[cfg(not(candle_before = "0.10"))]
impl Model for Rwkv7 {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        self.model.forward_seq(&vec![0; ids.dim(1)?], &mut self.state)
    }

    fn step(&mut self, token: &Tensor, _: usize) -> Result<Tensor> {
        self.model.forward(token, &mut self.state, &[0])
    }

    fn clear(&mut self) -> Result<bool> {
        self.state = (self.new_state)()?;
        Ok(true)
    }
}

/// The inner widths of RWKV 7's low-rank projections. Candle reads them from the shapes of the
/// weights.
#[cfg(not(candle_before = "0.10"))]
#[derive(Deserialize)]
struct LowRanks {
    decay_low_rank_dim: usize,
    a_low_rank_dim: usize,
    v_low_rank_dim: usize,
    gate_low_rank_dim: usize,
}

#[cfg(not(candle_before = "0.10"))]
fn rwkv7(context: &Context) -> Loaded {
    use m::rwkv_v7::{Config, Model, State};
    let config: Config = context.read()?;
    let ranks: LowRanks = context.read()?;
    for (name, rank) in [
        ("w1", ranks.decay_low_rank_dim),
        ("a1", ranks.a_low_rank_dim),
        ("v1", ranks.v_low_rank_dim),
        ("g1", ranks.gate_low_rank_dim),
    ] {
        context.store.shape(&format!("blocks.0.att.{name}"), (config.hidden_size, rank));
    }
    let model = Model::new(&config, context.weights.clone())?;
    let (dtype, device) = (context.dtype, context.device.clone());
    let new_state: NewState<State> =
        Box::new(move || State::new_with_dtype(&config, &device, dtype));
    Ok(Box::new(Rwkv7 { model, state: new_state()?, new_state }))
}

/// Mamba 2, which reads a prompt in chunks.
struct Mamba2 {
    model: m::mamba2::Model,
    state: m::mamba2::State,
    new_state: NewState<m::mamba2::State>,
}

impl Model for Mamba2 {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        self.model.forward_prefill(ids, &mut self.state, CHUNK)
    }

    fn step(&mut self, token: &Tensor, _: usize) -> Result<Tensor> {
        self.model.forward(&token.squeeze(1)?, &mut self.state)
    }

    fn clear(&mut self) -> Result<bool> {
        self.state = (self.new_state)()?;
        Ok(true)
    }
}

fn mamba2(context: &Context) -> Loaded {
    use m::mamba2::{Config, Model, State};
    let config: Config = context.read()?;
    let model = Model::new(&config, context.weights.clone())?;
    let (batch, dtype, device) = (context.batch, context.dtype, context.device.clone());
    let new_state: NewState<State> = Box::new(move || State::new(batch, &config, dtype, &device));
    Ok(Box::new(Mamba2 { model, state: new_state()?, new_state }))
}

/// RecurrentGemma, whose state is part of the model.
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
