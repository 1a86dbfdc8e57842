//! Speculative decoding: a draft proposes tokens, and the model checks all of them in one pass.
//!
//! The draft is the first layer of the model with the same head, so that it needs no weights. The
//! model accepts the proposed tokens up to the first that it would not have chosen, and replaces
//! that one. The result is exactly that of the model alone.

use candle_core::{D, Device, Result, Tensor};

use super::decoder::{Cache, Decoder, LOGITS, ROW, VOCAB, append_bytes, cache_bytes, weight_bytes};

/// Layers of the model.
pub const LAYERS: usize = 2;
/// Tokens that the draft proposes in each round.
pub const PROPOSED: usize = 4;
/// The number of tokens of a request, at least.
pub const TOKENS: usize = 24;
/// The prompt of every request.
pub const PROMPT: [u32; 4] = [11, 205, 88, 460];

/// A model and its draft.
#[derive(Debug)]
pub struct Speculation {
    model: Decoder,
    draft: Decoder,
}

/// The tokens of a request, and its rounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The generated tokens.
    pub tokens: Vec<u32>,
    /// The number of proposed tokens that the model accepted in each round.
    pub accepted: Vec<usize>,
}

impl Speculation {
    /// A model of [`weight_bytes`] with [`LAYERS`]; the draft shares its weights.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        let model = Decoder::new(LAYERS, device)?;
        Ok(Self { draft: model.first_layers(1), model })
    }

    /// Generates with the model alone.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn generate_alone(&self, count: usize) -> Result<Vec<u32>> {
        let mut cache = Cache::default();
        let mut next = PROMPT.to_vec();
        let mut tokens = Vec::with_capacity(count);
        while tokens.len() < count {
            let hidden = self.model.forward(&next, &mut cache)?;
            next = vec![self.model.last_logits(&hidden)?.argmax(0)?.to_scalar()?];
            tokens.extend(&next);
        }
        Ok(tokens)
    }

    /// Generates [`TOKENS`] tokens, and those that the last round accepts beyond them.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn generate(&self) -> Result<Answer> {
        self.decode(|_, _| Ok(()))
    }

    /// The leak: keeps the logits of each replaced token as a view of the round's logits,
    /// [`leak_bytes`] in a request.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn generate_keeping_logits(&self, kept: &mut Vec<Tensor>) -> Result<Answer> {
        self.decode(|logits, accepted| {
            kept.push(logits.narrow(0, accepted, 1)?);
            Ok(())
        })
    }

    fn decode(&self, mut keep: impl FnMut(&Tensor, usize) -> Result<()>) -> Result<Answer> {
        let (mut cache, mut drafted) = (Cache::default(), Cache::default());
        let (last, before) = PROMPT.split_last().expect("the prompt is not empty");
        self.model.forward(before, &mut cache)?;
        let mut text = PROMPT.to_vec();
        let mut answer = Answer::default();
        let mut last = *last;
        while answer.tokens.len() < TOKENS {
            let proposed = self.propose(&text, &mut drafted)?;
            let mut ids = vec![last];
            ids.extend(&proposed);
            let hidden = self.model.forward(&ids, &mut cache)?;
            let logits = self.model.logits(&hidden)?;
            let chosen: Vec<u32> = logits.argmax(D::Minus1)?.to_vec1()?;
            let pairs = proposed.iter().zip(&chosen);
            let accepted = pairs.take_while(|(proposed, chosen)| proposed == chosen).count();
            keep(&logits, accepted)?;
            drop((hidden, logits));
            let taken = &chosen[..=accepted];
            last = chosen[accepted];
            text.extend(taken);
            answer.tokens.extend(taken);
            answer.accepted.push(accepted);
            // All tokens but the last one, which the next round adds.
            cache.truncate(text.len() - 1)?;
            drafted.truncate(text.len() - 1)?;
        }
        Ok(answer)
    }

    /// The tokens that the draft would generate after `text`.
    fn propose(&self, text: &[u32], cache: &mut Cache) -> Result<Vec<u32>> {
        let mut next = text[cache.tokens()..].to_vec();
        let mut proposed = Vec::with_capacity(PROPOSED);
        while proposed.len() < PROPOSED {
            let hidden = self.draft.forward(&next, cache)?;
            next = vec![self.draft.last_logits(&hidden)?.argmax(0)?.to_scalar()?];
            proposed.extend(&next);
        }
        Ok(proposed)
    }
}

/// The peak of live bytes of a request, weights included, in the pass of the last round: the last
/// layer adds the round's tokens, or arg-max chooses tokens from their logits. For arg-max, candle
/// uploads two dims and two strides of 8 bytes.
pub fn peak_bytes(answer: &Answer) -> usize {
    let last = answer.accepted.last().expect("a request has a round");
    // In the cache before the last round are all tokens but the last one.
    let old = PROMPT.len() + answer.tokens.len() - (last + 1) - 1;
    let new = PROPOSED + 1;
    let draft = cache_bytes(1, old + PROPOSED);
    let appending = append_bytes(LAYERS, old, new);
    let choosing = cache_bytes(LAYERS, old + new) + new * (ROW + LOGITS + 4) + 4 * 8;
    weight_bytes(LAYERS) + draft + appending.max(choosing)
}

/// Bytes that a request leaks: the logits of every round.
pub fn leak_bytes(answer: &Answer) -> usize {
    answer.accepted.len() * (PROPOSED + 1) * VOCAB * 4
}
