//! A small view that keeps its whole storage.

use candle_core::{D, DType, Result, Tensor};
use memcheck_runtime::Trial;

use super::{Family, HISTORY, NUMBERS, Scenario, scenario};

const SOURCE: &str = include_str!("views.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, last_row_of_logits, "view-keeps-storage", Steady),
    scenario!(SOURCE, contiguous_at_batch_one, "view-keeps-storage", Steady),
    scenario!(SOURCE, first_token_of_every_text, "view-keeps-storage", Steady),
];

/// Tokens in a request, width of a hidden state, size of the vocabulary.
const SEQ: usize = 8;
const WIDTH: usize = 32;
const VOCAB: usize = 64;

struct Head {
    hidden: Tensor,
    unembedding: Tensor,
}

impl Head {
    fn new(trial: &Trial) -> Result<Self> {
        Ok(Self {
            hidden: Tensor::zeros((SEQ, WIDTH), DType::F32, trial.device())?,
            unembedding: Tensor::zeros((WIDTH, VOCAB), DType::F32, trial.device())?,
        })
    }

    /// The last row of new logits, `(1, 1, VOCAB)` as a view.
    fn last(&self) -> Result<Tensor> {
        // leaks: last_row_of_logits, contiguous_at_batch_one
        let logits = self.hidden.matmul(&self.unembedding)?.unsqueeze(0)?;
        logits.narrow(1, SEQ - 1, 1)
    }
}

/// All logits, `(1, SEQ, VOCAB)` of f32.
const LOGITS: u64 = (SEQ * VOCAB * 4) as u64;

/// The logits of the last token of every request.
pub mod last_row_of_logits {
    use super::*;

    /// The logits of all tokens.
    pub fn bytes(_leg: Family) -> u64 {
        LOGITS
    }

    /// Keeps the view.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let head = Head::new(trial)?;
        let mut kept = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            kept.push(head.last()?);
            Ok(())
        })
    }

    /// Keeps the token as a number.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let head = Head::new(trial)?;
        let mut tokens: Vec<u32> = Vec::with_capacity(NUMBERS);
        trial.iterate(|_| {
            tokens.push(head.last()?.argmax(D::Minus1)?.flatten_all()?.get(0)?.to_scalar()?);
            Ok(())
        })
    }
}

/// A fix that does not work: one row of a batch of one is already contiguous, so `contiguous` makes
/// no copy.
pub mod contiguous_at_batch_one {
    use super::*;

    /// The logits of all tokens.
    pub fn bytes(_leg: Family) -> u64 {
        LOGITS
    }

    /// Keeps the result of `contiguous`.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let head = Head::new(trial)?;
        let mut kept = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            kept.push(head.last()?.contiguous()?);
            Ok(())
        })
    }

    /// Keeps a true copy of the last request only.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let head = Head::new(trial)?;
        let mut kept = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            kept.clear();
            kept.push(head.last()?.force_contiguous()?);
            Ok(())
        })
    }
}

/// The first token of every text as its embedding.
pub mod first_token_of_every_text {
    use super::*;

    /// The hidden states of all tokens, `(1, SEQ, WIDTH)` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (SEQ * WIDTH * 4) as u64
    }

    /// Keeps the row as a view.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let hidden = Tensor::zeros((1, SEQ, WIDTH), DType::F32, trial.device())?;
        let mut index = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            // leaks: first_token_of_every_text
            let states = tracing::info_span!("encoder").in_scope(|| hidden.gelu())?;
            index.push(states.get(0)?.get(0)?);
            Ok(())
        })
    }

    /// Keeps the row as numbers, in an index of a fixed size.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let hidden = Tensor::zeros((1, SEQ, WIDTH), DType::F32, trial.device())?;
        let mut index = vec![0f32; HISTORY * WIDTH];
        trial.iterate(|i| {
            let row: Vec<f32> = hidden.gelu()?.get(0)?.get(0)?.to_vec1()?;
            let at = i % HISTORY * WIDTH;
            index[at..at + WIDTH].copy_from_slice(&row);
            Ok(())
        })
    }
}
