//! Caches that are larger with every position (candle#1599, #2937).

use std::collections::HashMap;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_nn::kv_cache::Cache;
use candle_transformers::models::llama;
use memcheck_runtime::Trial;

use super::{Family, HISTORY, Scenario, scenario};
use crate::llama::tiny_config;

const SOURCE: &str = include_str!("growing.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, concatenated_at_every_token, "cache-grows", Enlarged),
    scenario!(SOURCE, capacity_that_grows_in_steps, "cache-grows", Enlarged),
    scenario!(SOURCE, index_of_documents, "cache-grows", Enlarged),
    scenario!(SOURCE, masks_of_every_length, "cache-by-shape", Growing),
    scenario!(SOURCE, masks_that_a_model_keeps, "cache-by-shape", Growing),
    scenario!(SOURCE, positions_of_every_length, "cache-by-shape", Growing),
];

/// Width of a cached token.
const WIDTH: usize = 256;
/// One cached token of f32: 1,024 bytes.
const TOKEN: u64 = (WIDTH * 4) as u64;

fn token(device: &Device) -> Result<Tensor> {
    Tensor::zeros((1, 1, WIDTH), DType::F32, device)
}

/// A cache that is replaced by a longer one at every token.
pub mod concatenated_at_every_token {
    use super::*;

    /// The length of the window of the fixed twin, in tokens.
    const WINDOW: usize = 4;

    /// One token.
    pub fn bytes(_leg: Family) -> u64 {
        TOKEN
    }

    /// Keeps all tokens.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |cache| Ok(cache.clone()))
    }

    /// Keeps a window.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |cache| cache.narrow(1, cache.dim(1)? - (WINDOW - 1), WINDOW - 1))
    }

    fn run(trial: &mut Trial, past: fn(&Tensor) -> Result<Tensor>) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut cache = Tensor::zeros((1, WINDOW, WIDTH), DType::F32, &device)?;
        trial.iterate(|_| {
            let new = token(&device)?;
            let _attention = tracing::info_span!("attention").entered();
            // leaks: concatenated_at_every_token
            cache = Tensor::cat(&[&past(&cache)?, &new], 1)?;
            Ok(())
        })
    }
}

/// The cache of candle-nn, which allocates room for several tokens at once. It does not grow
/// between two such allocations.
pub mod capacity_that_grows_in_steps {
    use super::*;

    /// Tokens for which it allocates room at once.
    const STEP: usize = 4;

    /// One token, as the mean over whole periods.
    pub fn bytes(_leg: Family) -> u64 {
        TOKEN
    }

    /// Appends for ever.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_, _| ())
    }

    /// Resets the cache after each sequence of `2 STEP` tokens.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |cache, tokens| {
            if tokens % (2 * STEP) == 0 {
                *cache = Cache::new(1, STEP);
            }
        })
    }

    fn run(trial: &mut Trial, after: fn(&mut Cache, usize)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut cache = Cache::new(1, STEP);
        trial.iterate(|i| {
            let new = token(&device)?;
            // leaks: capacity_that_grows_in_steps
            cache.append(&new)?;
            after(&mut cache, i + 1);
            Ok(())
        })
    }
}

/// A causal mask for each length, as models of candle-transformers keep them. A conversation has
/// another length at every turn.
pub mod masks_of_every_length {
    use super::*;

    /// Tokens that each turn adds.
    const TURN: usize = 8;

    fn length(turn: usize) -> usize {
        64 + TURN * turn
    }

    /// `length²` of u8, summed over the measured turns, 2 to 12, after two turns of warm-up.
    pub fn bytes(_leg: Family) -> u64 {
        (2..=12).map(|turn| length(turn).pow(2) as u64).sum::<u64>()
    }

    /// Keeps the mask of every length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, usize::MAX, |_| ())
    }

    /// Keeps the mask of the last length, and ends a conversation after two turns.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, 2, HashMap::clear)
    }

    fn run(
        trial: &mut Trial,
        turns: usize,
        before: fn(&mut HashMap<usize, Tensor>),
    ) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut masks = HashMap::with_capacity(HISTORY);
        trial.iterate(|turn| {
            before(&mut masks);
            let length = length(turn % turns);
            // leaks: masks_of_every_length
            masks.insert(length, Tensor::zeros((length, length), DType::U8, &device)?);
            Ok(())
        })
    }
}

/// The cache of candle-transformers' Llama, which keeps a mask for each length of a prompt.
pub mod masks_that_a_model_keeps {
    use super::*;

    /// The shortest prompt. Its mask is larger than 1 KiB.
    const SHORTEST: usize = 33;

    /// `length²` of u8, summed over the measured prompts, 2 to 11.
    pub fn bytes(_leg: Family) -> u64 {
        (2..=11).map(|prompt: u64| (SHORTEST as u64 + prompt).pow(2)).sum()
    }

    /// One cache for prompts of every length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |prompt| SHORTEST + prompt)
    }

    /// Prompts that are padded to one length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| SHORTEST)
    }

    fn run(trial: &mut Trial, length: fn(usize) -> usize) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let config = llama::Config { max_position_embeddings: 1_024, ..tiny_config() };
        let model = llama::Llama::load(VarBuilder::zeros(DType::F32, &device), &config)?;
        let mut cache = llama::Cache::new(false, DType::F32, &config, &device)?;
        trial.iterate(|prompt| {
            let ids = Tensor::zeros((1, length(prompt)), DType::U32, &device)?;
            // leaks: masks_that_a_model_keeps
            model.forward(&ids, 0, &mut cache)?;
            Ok(())
        })
    }
}

/// An index of documents on the device, which is extended by a row for each of them.
pub mod index_of_documents {
    use super::*;

    /// Documents that are in the index from the start.
    const DOCUMENTS: usize = 4;

    struct Index {
        rows: Tensor,
    }

    impl Index {
        fn add(&mut self, embedding: &Tensor) -> Result<()> {
            // leaks: index_of_documents
            self.rows = self.rows.pad_with_zeros(0, 0, 1)?;
            self.rows.slice_set(embedding, 0, self.rows.dim(0)? - 1)
        }
    }

    /// One row.
    pub fn bytes(_leg: Family) -> u64 {
        TOKEN
    }

    /// Adds every document.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| Ok(()))
    }

    /// Removes the oldest document before it adds one.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |index| {
            index.rows = index.rows.narrow(0, 1, DOCUMENTS - 1)?;
            Ok(())
        })
    }

    fn run(trial: &mut Trial, before: fn(&mut Index) -> Result<()>) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut index = Index { rows: Tensor::zeros((DOCUMENTS, WIDTH), DType::F32, &device)? };
        let document = Tensor::ones((8, WIDTH), DType::F32, &device)?;
        trial.iterate(|_| {
            before(&mut index)?;
            Ok(index.add(&document.mean_keepdim(0)?)?)
        })
    }
}

/// Encodings of positions, which a model computes when it sees a length for the first time.
pub mod positions_of_every_length {
    use super::*;

    struct Positions {
        tables: HashMap<usize, Tensor>,
    }

    impl Positions {
        fn of(&mut self, length: usize, device: &Device) -> Result<Tensor> {
            if let Some(table) = self.tables.get(&length) {
                return Ok(table.clone());
            }
            let positions = Tensor::arange(0_f32, length as f32, device)?.unsqueeze(1)?;
            // leaks: positions_of_every_length
            let table = positions.broadcast_as((length, WIDTH))?.contiguous()?;
            self.tables.insert(length, table.clone());
            Ok(table)
        }
    }

    /// A row for each position, summed over the measured texts, 2 to 11.
    pub fn bytes(_leg: Family) -> u64 {
        (2..=11).map(|text| length(text) as u64 * TOKEN).sum()
    }

    fn length(text: usize) -> usize {
        16 + text
    }

    /// Texts of every length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, length)
    }

    /// Texts that are padded to a multiple of 16 tokens.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |text| length(text % 16).next_multiple_of(16))
    }

    fn run(trial: &mut Trial, length: fn(usize) -> usize) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut positions = Positions { tables: HashMap::with_capacity(HISTORY) };
        trial.iterate(|text| {
            let embedded = Tensor::zeros((length(text), WIDTH), DType::F32, &device)?;
            embedded.add(&positions.of(length(text), &device)?)?;
            Ok(())
        })
    }
}
