//! Models with an encoder and a decoder. The encoder reads the prompt; for models of sound the
//! decoder reads it. The decoder then generates token by token. The output of the encoder is kept
//! for all tokens.

use candle_core::{DType, Result, Tensor};
use candle_transformers::models as m;

use super::{Context, Loaded, Model, ModelFamily, defaults};

pub(super) const TABLE: &[ModelFamily] = &[
    ModelFamily::pair(&["mt5", "t5", "umt5"], t5).unbounded().with_defaults(defaults::T5),
    ModelFamily::pair(&["marian"], marian).with_defaults(defaults::MARIAN),
    ModelFamily {
        positions: &["max_target_positions"],
        ..ModelFamily::pair(&["whisper"], whisper)
    }
    .with_note(
        "the prompt is that of the decoder; the encoder reads 30 seconds of audio before it",
    ),
];

/// The number of frames for each position of the encoder. All its positions together cover 30
/// seconds.
const FRAMES_PER_POSITION: usize = 2;

struct T5 {
    model: m::t5::T5ForConditionalGeneration,
    encoded: Option<Tensor>,
}

impl Model for T5 {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        let encoded = self.model.encode(ids)?;
        let first = ids.narrow(1, 0, 1)?.contiguous()?;
        let logits = self.model.decode(&first, &encoded)?;
        self.encoded = Some(encoded);
        Ok(logits)
    }

    fn step(&mut self, token: &Tensor, _: usize) -> Result<Tensor> {
        self.model.decode(token, encoded(&self.encoded)?)
    }

    fn clear(&mut self) -> Result<bool> {
        self.model.clear_kv_cache();
        self.encoded = None;
        Ok(true)
    }
}

fn encoded(encoded: &Option<Tensor>) -> Result<&Tensor> {
    encoded.as_ref().ok_or_else(|| candle_core::Error::msg("a token was requested before a prompt"))
}

fn t5(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::t5::T5ForConditionalGeneration::load(context.weights.clone(), &config)?;
    Ok(Box::new(T5 { model, encoded: None }))
}

struct Marian {
    model: m::marian::MTModel,
    encoded: Option<Tensor>,
    /// Number of tokens that the decoder has read.
    read: usize,
}

impl Model for Marian {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        self.encoded = Some(self.model.encoder().forward(ids, 0)?);
        self.step(&ids.narrow(1, 0, 1)?.contiguous()?, 0)
    }

    fn step(&mut self, token: &Tensor, _: usize) -> Result<Tensor> {
        let logits = self.model.decode(token, encoded(&self.encoded)?, self.read)?;
        self.read += 1;
        Ok(logits)
    }

    fn clear(&mut self) -> Result<bool> {
        self.model.reset_kv_cache();
        (self.encoded, self.read) = (None, 0);
        Ok(true)
    }
}

fn marian(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::marian::MTModel::new(&config, context.weights.clone())?;
    Ok(Box::new(Marian { model, encoded: None, read: 0 }))
}

struct Whisper {
    model: m::whisper::model::Whisper,
    dtype: DType,
    encoded: Option<Tensor>,
}

impl Whisper {
    fn decode(&mut self, ids: &Tensor, first: bool) -> Result<Tensor> {
        let states = self.model.decoder.forward(ids, encoded(&self.encoded)?, first)?;
        let last = states.dim(1)? - 1;
        self.model.decoder.final_linear(&states.narrow(1, last, 1)?)
    }
}

impl Model for Whisper {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        let config = &self.model.config;
        let frames = FRAMES_PER_POSITION * config.max_source_positions;
        let sound = (ids.dim(0)?, config.num_mel_bins, frames);
        let sound = Tensor::zeros(sound, self.dtype, ids.device())?;
        self.encoded = Some(self.model.encoder.forward(&sound, true)?);
        drop(sound);
        self.decode(ids, true)
    }

    /// All tokens must be passed again, because candle's decoder only caches the keys and values of
    /// the sound.
    fn step(&mut self, token: &Tensor, position: usize) -> Result<Tensor> {
        let ids = Tensor::zeros((token.dim(0)?, position + 1), DType::U32, token.device())?;
        self.decode(&ids, false)
    }

    fn clear(&mut self) -> Result<bool> {
        self.model.reset_kv_cache();
        self.encoded = None;
        Ok(true)
    }
}

fn whisper(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::whisper::model::Whisper::load(&context.weights, config)?;
    Ok(Box::new(Whisper { model, dtype: context.dtype, encoded: None }))
}
