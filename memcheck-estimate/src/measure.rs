//! Measures inference in phases: loading, the prompt, generation.

use std::cell::Cell;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use memcheck_core::size::{both, counted};
use memcheck_core::wire::estimate::{Estimate, Inference};
use memcheck_runtime::{__private as phases, reset_peak, usage};
use serde_json::Value;

use crate::families::{Context, Model, ModelFamily};
use crate::gguf::Stored;
use crate::problem::Problem;
use crate::question::{CheckedQuestion, WeightSource};
use crate::safetensors::TensorListing;
use crate::stage::FailureStage;
use crate::weights::{Elements, Weights};

/// Bytes of the canary allocation.
const CANARY: usize = 1 << 20;

/// Proves that the probes can see an allocation on `device`, and can see it freed. The live bytes
/// must change by exactly the bytes of the canary.
pub(crate) fn check_probes(device: &Device) -> Result<(), Problem> {
    let before = usage(device).allocated;
    let canary = Tensor::zeros(CANARY, DType::U8, device)?;
    let during = usage(device).allocated;
    drop(canary);
    if during == before + CANARY as u64 && usage(device).allocated == before {
        return Ok(());
    }
    Err(Problem::not_measured("the probes do not see the allocations of this device"))
}

/// Checks that no event was lost, because a lost event can change every figure.
pub(crate) fn check_no_lost_events() -> Result<(), Problem> {
    match phases::lost_events() {
        0 => Ok(()),
        lost => Err(Problem::not_measured(format!(
            "the probes lost {}",
            counted(lost, "memory event", "memory events")
        ))),
    }
}

/// Loads a model with another builder of its weights, without measuring it.
pub(crate) fn load_with(
    checked: &CheckedQuestion,
    builder: VarBuilder<'static>,
    device: &Device,
) -> Result<Box<dyn Model>, Problem> {
    let WeightSource::Config { family, config, listing } = &checked.source else {
        return Err(Problem::not_measured("a GGUF file has no safetensors"));
    };
    let store = store(family, config, listing, false);
    let context = Context { weights: builder, ..context(checked, config, &store, device) };
    (family.load)(&context)
}

/// Creates the store of a model's weights.
fn store(
    family: &ModelFamily,
    config: &Value,
    listing: &Option<Arc<TensorListing>>,
    trained: bool,
) -> Weights {
    let tied = config.get("tie_word_embeddings").and_then(|tied| tied.as_bool());
    let weights = Weights::new(tied.unwrap_or(false), trained);
    match listing {
        Some(listing) => weights.listed(listing.clone()),
        None => weights.without(family.absent),
    }
}

fn context(
    checked: &CheckedQuestion,
    config: &Value,
    weights: &Weights,
    device: &Device,
) -> Context {
    let CheckedQuestion { model, dtype, batch, flash_attn, .. } = checked;
    Context {
        config: config.clone(),
        name: model.clone(),
        store: weights.clone(),
        weights: weights.builder(*dtype, device),
        dtype: *dtype,
        device: device.clone(),
        batch: *batch,
        flash_attn: *flash_attn,
    }
}

/// Loads a model whose weights have values, without measuring it.
pub(crate) fn load_filled(
    checked: &CheckedQuestion,
    elements: Elements,
    device: &Device,
) -> Result<Box<dyn Model>, Problem> {
    let WeightSource::Config { family, config, listing } = &checked.source else {
        return Err(Problem::not_measured("the weights of a GGUF file are zeros"));
    };
    let weights = store(family, config, listing, false).filled(elements);
    (family.load)(&context(checked, config, &weights, device))
}

/// A loaded model and the memory that loading took.
pub(crate) struct Loaded {
    pub(crate) model: Box<dyn Model>,
    /// The weights of a configuration. Those of a GGUF file are in `stored`.
    pub(crate) weights: Weights,
    stored: Option<Stored>,
    /// Live bytes before the model was loaded.
    before: u64,
    pub(crate) tables: u64,
    pub(crate) peak: u64,
}

impl Loaded {
    pub(crate) fn load(
        checked: &CheckedQuestion,
        trained: bool,
        device: &Device,
    ) -> Result<Self, Problem> {
        let before = usage(device).allocated;
        reset_peak(device);
        let (model, weights, stored) = match &checked.source {
            WeightSource::Config { family, config, listing } => {
                let weights = store(family, config, listing, trained);
                let model = (family.load)(&context(checked, config, &weights, device))?;
                (model, weights, None)
            }
            WeightSource::Gguf(file) => {
                let (model, stored) = file.load(checked.options(), device)?;
                (model, Weights::new(false, false), Some(stored))
            }
        };
        let after = usage(device);
        let peak = after.peak_allocated.saturating_sub(before);
        let mut loaded = Self { model, weights, stored, before, tables: 0, peak };
        let live = after.allocated.saturating_sub(before);
        loaded.tables = live.saturating_sub(loaded.weight_bytes());
        Ok(loaded)
    }

    /// Live bytes before the model was loaded.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    fn weight_bytes(&self) -> u64 {
        self.stored.as_ref().map_or_else(|| self.weights.bytes(), Stored::bytes)
    }

    /// Returns the live bytes and their peak since the phase began, minus the bytes that were live
    /// before the model was loaded.
    pub(crate) fn usage(&self, device: &Device) -> (u64, u64) {
        let now = usage(device);
        let less = |bytes: u64| bytes.saturating_sub(self.before);
        (less(now.allocated), less(now.peak_allocated))
    }

    /// Returns the estimate without the figures of inference or training.
    pub(crate) fn estimate(&self, checked: &CheckedQuestion) -> Estimate {
        let CheckedQuestion { source, model, batch, seq, generate, .. } = checked;
        let (note, dtype) = match source {
            WeightSource::Config { family, .. } => (family.note, checked.dtype.as_str().to_owned()),
            WeightSource::Gguf(file) => (None, file.main_type()),
        };
        let mut notes: Vec<String> = note.iter().map(|&note| note.to_owned()).collect();
        notes.extend(checked.notes.iter().cloned());
        notes.extend(self.stored.iter().flat_map(|stored| stored.notes.iter().cloned()));
        let files = self.weights.files();
        notes.extend(files.iter().filter_map(|(_, note)| note.clone()));
        if self.weights.duplicated_bytes() > 0 {
            notes.push(format!(
                "candle loads tied tensors twice: {} of the weights are copies and not parameters",
                both(self.weights.duplicated_bytes())
            ));
        }
        Estimate {
            model: model.clone(),
            dtype,
            batch: *batch as u64,
            seq: *seq as u64,
            generate: *generate as u64,
            parameters: self
                .stored
                .as_ref()
                .map_or_else(|| self.weights.parameters(), Stored::elements),
            weights: self.weight_bytes(),
            files: files.map(|(files, _)| files),
            types: self.stored.as_ref().map(|stored| stored.types.clone()).unwrap_or_default(),
            tables: self.tables,
            load_peak: self.peak,
            inference: None,
            training: None,
            peak: self.peak,
            notes,
        }
    }
}

/// Creates the ids of a prompt. Their values do not change the memory.
pub(crate) fn ids(checked: &CheckedQuestion, device: &Device) -> candle_core::Result<Tensor> {
    Tensor::zeros((checked.batch, checked.seq), DType::U32, device)
}

/// Measures only the loaded model, for models that a simulated device cannot run.
pub(crate) fn measure_loading(
    checked: &CheckedQuestion,
    device: &Device,
) -> Result<Estimate, Problem> {
    let mut estimate = Loaded::load(checked, false, device)?.estimate(checked);
    estimate.notes = vec![format!(
        "candle's `{}` reads the values of its router on the host, and a simulated device has no \
         values: only loading is measured, no prompt",
        checked.model
    )];
    Ok(estimate)
}

pub(crate) fn measure(
    checked: &CheckedQuestion,
    device: &Device,
    stage: &Cell<FailureStage>,
) -> Result<Estimate, Problem> {
    let mut loaded = Loaded::load(checked, false, device)?;
    let (held, _) = loaded.usage(device);

    stage.set(FailureStage::Prompt);
    reset_peak(device);
    let ids = ids(checked, device)?;
    let logits = loaded.model.prompt(&ids)?;
    let (with_logits, prompt_peak) = loaded.usage(device);
    drop(logits);
    let (without, _) = loaded.usage(device);
    drop(ids);
    let cache = loaded.usage(device).0.saturating_sub(held);
    let mut inference = Inference {
        cache,
        cache_after: cache,
        logits: with_logits.saturating_sub(without),
        activations: prompt_peak.saturating_sub(held + cache),
        prompt_peak,
        generation_peak: 0,
    };
    if checked.generate > 0 {
        reset_peak(device);
        let token = Tensor::zeros((checked.batch, 1), DType::U32, device)?;
        for number in 0..checked.generate {
            stage.set(FailureStage::Token(number + 1));
            loaded.model.step(&token, checked.seq + number)?;
        }
        drop(token);
        let (live, peak) = loaded.usage(device);
        inference.cache_after = live.saturating_sub(held);
        inference.generation_peak = peak;
    }
    let estimate = loaded.estimate(checked);
    let peak = estimate.peak.max(inference.prompt_peak).max(inference.generation_peak);
    Ok(Estimate { inference: Some(inference), peak, ..estimate })
}
