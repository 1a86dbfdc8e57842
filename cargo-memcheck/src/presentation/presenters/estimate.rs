//! Reports an estimate on stdout, because the estimate is the result of the command. The format is
//! a table or JSON.

use std::fmt::Write;

use memcheck_core::cards::Card;
use memcheck_core::size::{Size, counted, exact};
use memcheck_core::wire::estimate::{Estimate, Inference, StoredTensors, Training};
use serde::Serialize;

use super::style;
use crate::execution::estimator::DeviceFit;
use crate::invocation::values::Verbosity;

const VERSION: u32 = 1;

/// With the free bytes of each card on which the model fits.
type Cards = [(&'static Card, Option<u64>)];

/// One estimate, and where it fits.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) estimate: Estimate,
    pub(crate) cards: Vec<(&'static Card, Option<u64>)>,
    pub(crate) tried: Vec<DeviceFit>,
    pub(crate) flash_attn: bool,
}

#[derive(Serialize)]
struct EstimateLine<'a> {
    r#type: &'static str,
    version: u32,
    #[serde(flatten)]
    estimate: &'a Estimate,
    flash_attn: bool,
    cards: Vec<CardLine>,
}

#[derive(Serialize)]
struct CardLine {
    card: &'static str,
    bytes: u64,
    fits: bool,
    /// Bytes. `None` if the model does not fit.
    headroom: Option<u64>,
}

#[derive(Serialize)]
struct DeviceLine<'a> {
    r#type: &'static str,
    device: &'a str,
    flash_attn: bool,
    fits: bool,
    peak: Option<u64>,
    message: Option<&'a str>,
}

pub(crate) fn json(figures: &Figures) {
    let &Figures { ref estimate, ref cards, ref tried, flash_attn } = figures;
    let card = |&(card, headroom): &(&'static Card, Option<u64>)| CardLine {
        card: card.id,
        bytes: card.bytes,
        fits: headroom.is_some(),
        headroom,
    };
    let cards = cards.iter().map(card).collect();
    let (r#type, version) = ("estimate", VERSION);
    super::json::print(&EstimateLine { r#type, version, estimate, flash_attn, cards });
    for DeviceFit { device, result } in tried {
        super::json::print(&DeviceLine {
            r#type: "estimate-device",
            device,
            flash_attn,
            fits: result.is_ok(),
            peak: result.as_ref().ok().copied(),
            message: result.as_ref().err().map(String::as_str),
        });
    }
}

pub(crate) fn human(figures: &Figures, verbosity: Verbosity) -> String {
    let &Figures { ref estimate, ref cards, ref tried, flash_attn } = figures;
    let mut text = String::new();
    let mut table = EstimateText(&mut text);
    table.title(estimate, flash_attn);
    table.row("weights", estimate.weights, &parameters(estimate));
    for StoredTensors { r#type, tensors, bytes, .. } in &estimate.types {
        table.row(&format!("  {type}"), *bytes, &counted(*tensors, "tensor", "tensors"));
    }
    if estimate.tables > 0 {
        let (name, about) = match estimate.types.is_empty() {
            true => ("tables", "further memory after loading, such as rotary tables"),
            false => ("beyond the file", "dequantized tensors, padding, rotary tables"),
        };
        table.row(name, estimate.tables, about);
    }
    match (&estimate.inference, &estimate.training) {
        (Some(inference), _) => table.inference(estimate, inference),
        (None, Some(training)) => table.training(training),
        (None, None) => {}
    }
    table.row("peak", estimate.peak, peak(estimate));
    let lead = match estimate.is_run() {
        true => style::dim("note:"),
        false => style::warning("not measured:"),
    };
    for note in &estimate.notes {
        table.line(&format!("{lead} {note}"));
    }
    if let Some(training) = estimate.training.filter(|training| !training.is_whole()) {
        table.line(&incomplete(estimate, &training));
    }
    table.cards(cards, verbosity);
    for DeviceFit { device, result } in tried {
        table.line(&match result {
            Ok(_) => format!("{device}: fits"),
            Err(why) => format!("{device}: {}: {why}", style::error("does not fit")),
        });
    }
    text
}

fn parameters(estimate: &Estimate) -> String {
    if !estimate.types.is_empty() {
        let tensors = estimate.types.iter().map(|stored| stored.tensors).sum();
        let tensors = counted(tensors, "tensor", "tensors");
        return format!("{} parameters in {tensors} of the file", exact(estimate.parameters));
    }
    format!("{} parameters in {}", exact(estimate.parameters), estimate.dtype)
}

fn peak(estimate: &Estimate) -> &'static str {
    let Estimate { peak, load_peak, inference, training, .. } = estimate;
    match (inference, training) {
        (Some(it), _) if it.generation_peak == *peak => "while tokens are generated",
        (Some(it), _) if it.prompt_peak == *peak => "while the prompt is read",
        (_, Some(it)) if it.peak == *peak => "in the training step",
        _ if load_peak == peak => "while the model is loaded",
        _ => "",
    }
}

/// A training step may not reach all variables of the model.
fn incomplete(estimate: &Estimate, training: &Training) -> String {
    format!(
        "{} candle's `{}` does not train: the backward pass reaches {} of {} variables, because \
         fused normalization, softmax and rotary embeddings have no backward pass. The \
         figures are those of this step; gradients of all variables take at least {} B more, and \
         their activations are unknown",
        style::warning("not measured:"),
        estimate.model,
        exact(training.reached),
        exact(training.variables),
        exact(estimate.weights.saturating_sub(training.gradients)),
    )
}

struct EstimateText<'a>(&'a mut String);

impl EstimateText<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.0, "{text}");
    }

    fn title(&mut self, estimate: &Estimate, flash_attn: bool) {
        let Estimate { model, dtype, batch, seq, generate, .. } = estimate;
        let mut what = format!("{} in {dtype}: batch {}", style::strong(model), exact(*batch));
        let _ = write!(what, ", {} tokens", exact(*seq));
        if estimate.training.is_some() {
            what.push_str(", one training step");
        } else if *generate > 0 {
            let _ = write!(what, " of prompt, {} generated", exact(*generate));
        }
        if flash_attn {
            what.push_str(", with flash-attention");
        }
        self.line(&what);
    }

    fn row(&mut self, name: &str, bytes: u64, about: &str) {
        let size = Size(bytes).to_string();
        let row = format!("  {name:<16}{:>21} B{size:>13}  {about}", exact(bytes));
        self.line(row.trim_end());
    }

    fn inference(&mut self, estimate: &Estimate, inference: &Inference) {
        let Inference { cache, cache_after, logits, activations, .. } = inference;
        if *cache > 0 {
            self.row("KV cache", *cache, "kept for the next token, after the prompt");
        }
        if estimate.generate > 0 {
            self.row("", *cache_after, "after the last token");
        }
        self.row("activations", *activations, "peak during the prompt, minus the rows above");
        self.row("  logits", *logits, "output of the model");
    }

    fn training(&mut self, training: &Training) {
        let Training { variables, reached, gradients, optimizer, activations, .. } = training;
        let reached = format!("of {} of {} variables", exact(*reached), exact(*variables));
        self.row("gradients", *gradients, &reached);
        self.row("optimizer", *optimizer, "AdamW: two moments of each variable");
        self.row("activations", *activations, "peak during the step, minus the rows above");
    }

    fn cards(&mut self, cards: &Cards, verbosity: Verbosity) {
        if verbosity == Verbosity::Quiet {
            return;
        }
        let fits: Vec<_> = cards.iter().filter_map(|(card, left)| Some((card, (*left)?))).collect();
        let none: Vec<&str> =
            cards.iter().filter(|(_, left)| left.is_none()).map(|(card, _)| card.id).collect();
        if !fits.is_empty() {
            self.line(&format!("  {:<16}{:>13}{:>13}", "fits", "capacity", "headroom"));
        }
        for (card, left) in fits {
            let (capacity, left) = (Size(card.bytes).to_string(), Size(left).to_string());
            self.line(&format!("  {:<16}{capacity:>13}{left:>13}", card.id));
        }
        if !none.is_empty() {
            self.line(&format!("does not fit: {}", none.join(", ")));
        }
    }
}
