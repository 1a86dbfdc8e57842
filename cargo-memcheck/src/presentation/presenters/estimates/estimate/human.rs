//! The table of an estimate, or of two estimates side by side: without and with flash-attention.

use std::fmt::Write;

use memcheck_core::cards::Card;
use memcheck_core::size::{Size, counted, exact};
use memcheck_core::wire::estimate::{Estimate, Inference, StoredTensors, Training, WeightFiles};

use super::EstimateFigures;
use crate::execution::estimator::DeviceFit;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::style;
use crate::system::escape;

const NAMES: [&str; 2] = ["without flash-attention", "with flash-attention"];

/// A figure of an estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    name: String,
    bytes: u64,
    about: String,
}

/// Returns the table of one estimate, or of one without and one with flash-attention.
pub(crate) fn human(figures: &[EstimateFigures], verbosity: Verbosity) -> String {
    let mut text = String::new();
    let Some(first) = figures.first() else { return text };
    title(&mut text, &first.estimate);
    if figures.len() > 1 {
        line(&mut text, format!("  {:<16}{:>36}{:>36}", "", NAMES[0], NAMES[1]));
    }
    for row in side_by_side(figures) {
        line(&mut text, row);
    }
    for (note, estimate, only) in notes(figures) {
        let lead = match estimate.is_run() {
            true => style::dim("note:"),
            false => style::warning("not measured:"),
        };
        // A note can contain the name of a tensor, which is text of the file.
        line(&mut text, format!("{lead} {only}{}", escape::line(note)));
    }
    for EstimateFigures { estimate, .. } in figures {
        if let Some(training) = estimate.training.filter(|training| !training.is_whole()) {
            line(&mut text, incomplete(estimate, &training));
        }
    }
    if verbosity != Verbosity::Quiet {
        cards(&mut text, figures);
    }
    for (column, EstimateFigures { tried, .. }) in figures.iter().enumerate() {
        let only = if figures.len() > 1 { format!("{}, ", NAMES[column]) } else { String::new() };
        for DeviceFit { device, result } in tried {
            line(
                &mut text,
                match result {
                    Ok(_) => format!("{only}{device}: fits"),
                    Err(why) => {
                        format!("{only}{device}: {}: {why}", style::error("does not fit"))
                    }
                },
            );
        }
    }
    text
}

fn line(text: &mut String, line: impl AsRef<str>) {
    let _ = writeln!(text, "{}", line.as_ref().trim_end());
}

fn title(text: &mut String, estimate: &Estimate) {
    let Estimate { model, dtype, batch, seq, generate, .. } = estimate;
    let mut title = format!("{} in {dtype}: batch {}", style::strong(model), exact(*batch));
    let _ = write!(title, ", {} tokens", exact(*seq));
    if estimate.training.is_some() {
        title.push_str(", one training step");
    } else if *generate > 0 {
        let _ = write!(title, " of prompt, {} generated", exact(*generate));
    }
    line(text, title);
}

/// Returns a line for each figure, with the bytes of each estimate.
fn side_by_side(figures: &[EstimateFigures]) -> Vec<String> {
    let columns: Vec<Vec<Row>> = figures.iter().map(|one| rows(&one.estimate)).collect();
    // An estimate can lack a row whose bytes are 0.
    let longest = columns.iter().max_by_key(|rows| rows.len());
    let find = |rows: &[Row], name: &str| rows.iter().find(|row| row.name == name).cloned();
    let joined = longest.into_iter().flatten().map(|Row { name, about, .. }| {
        let mut text = format!("  {name:<16}");
        let mut same = true;
        for rows in &columns {
            let row = find(rows, name);
            let bytes = row.as_ref().map_or(0, |row| row.bytes);
            same &= row.is_none_or(|row| row.about == *about);
            let _ = write!(text, "{:>21} B{:>13}", exact(bytes), Size(bytes).to_string());
        }
        if same {
            let _ = write!(text, "  {about}");
        }
        text
    });
    joined.collect()
}

fn rows(estimate: &Estimate) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |name: &str, bytes: u64, about: &str| {
        rows.push(Row { name: name.to_owned(), bytes, about: about.to_owned() });
    };
    row("weights", estimate.weights, &parameters(estimate));
    if let Some(WeightFiles { tensors, bytes, .. }) = estimate.files {
        row("  in the files", bytes, &counted(tensors, "tensor", "tensors"));
    }
    for StoredTensors { r#type, tensors, bytes, .. } in &estimate.types {
        row(&format!("  {type}"), *bytes, &counted(*tensors, "tensor", "tensors"));
    }
    if estimate.tables > 0 {
        let (name, about) = match estimate.types.is_empty() {
            true => ("tables", "further memory after loading, such as rotary tables"),
            false => ("beyond the file", "dequantized tensors, padding, rotary tables"),
        };
        row(name, estimate.tables, about);
    }
    if let Some(Inference { cache, cache_after, logits, activations, .. }) = estimate.inference {
        if cache > 0 {
            row("KV cache", cache, "kept for the next token, after the prompt");
        }
        if estimate.generate > 0 {
            row("", cache_after, "after the last token");
        }
        row("activations", activations, "peak during the prompt, minus the rows above");
        row("  logits", logits, "output of the model");
    } else if let Some(training) = &estimate.training {
        let Training { variables, reached, gradients, optimizer, activations, .. } = training;
        let reached = format!("of {} of {} variables", exact(*reached), exact(*variables));
        row("gradients", *gradients, &reached);
        row("optimizer", *optimizer, "AdamW: two moments of each variable");
        row("activations", *activations, "peak during the step, minus the rows above");
    }
    row("peak", estimate.peak, peak(estimate));
    rows
}

fn parameters(estimate: &Estimate) -> String {
    if estimate.types.is_empty() {
        return format!("{} parameters in {}", exact(estimate.parameters), estimate.dtype);
    }
    let tensors = estimate.types.iter().map(|stored| stored.tensors).sum();
    let tensors = counted(tensors, "tensor", "tensors");
    format!("{} parameters in {tensors} of the file", exact(estimate.parameters))
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

/// Returns each note once, with its estimate, and the name of the column if only one has the note.
fn notes(figures: &[EstimateFigures]) -> Vec<(&str, &Estimate, String)> {
    let mut all: Vec<(&str, &Estimate, String)> = Vec::new();
    for (column, EstimateFigures { estimate, .. }) in figures.iter().enumerate() {
        for note in &estimate.notes {
            if all.iter().any(|(other, ..)| other == note) {
                continue;
            }
            let everywhere = figures.iter().all(|other| other.estimate.notes.contains(note));
            let only = if everywhere { String::new() } else { format!("{}: ", NAMES[column]) };
            all.push((note, estimate, only));
        }
    }
    all
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

/// Writes a row for each card on which an estimate fits, with the memory that each leaves free.
fn cards(text: &mut String, figures: &[EstimateFigures]) {
    let free = |card: &Card| -> Vec<Option<u64>> {
        let of = |figures: &EstimateFigures| {
            let found = figures.cards.iter().find(|(other, _)| other.id == card.id);
            found.and_then(|(_, left)| *left)
        };
        figures.iter().map(of).collect()
    };
    let known = figures.first().into_iter().flat_map(|first| &first.cards);
    let rows: Vec<_> = known.map(|(card, _)| (*card, free(card))).collect();
    let (fits, none): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, left)| left.iter().any(Option::is_some));
    if !fits.is_empty() {
        let mut header = format!("  {:<16}{:>13}", "fits", "capacity");
        match figures.len() {
            1 => header.push_str("     headroom"),
            _ => {
                for name in NAMES {
                    let _ = write!(header, "  headroom {name}");
                }
            }
        }
        line(text, header);
    }
    for (card, left) in fits {
        let mut row = format!("  {:<16}{:>13}", card.id, Size(card.bytes).to_string());
        for (left, name) in left.iter().zip(NAMES) {
            let width = if figures.len() > 1 { name.len() + 11 } else { 13 };
            let left =
                left.map_or_else(|| "does not fit".to_owned(), |left| Size(left).to_string());
            let _ = write!(row, "{left:>width$}");
        }
        line(text, row);
    }
    if !none.is_empty() {
        let none: Vec<&str> = none.iter().map(|(card, _)| card.id).collect();
        line(text, format!("does not fit: {}", none.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::cards::CARDS;

    use super::*;
    use crate::presentation::presenters::estimates::estimate::example::loaded;

    fn figures(flash_attn: bool, peak: u64) -> EstimateFigures {
        let inference = Inference {
            cache: 64,
            cache_after: 64,
            logits: 8,
            activations: peak - 164,
            prompt_peak: peak,
            generation_peak: 0,
        };
        let notes = if flash_attn { Vec::new() } else { vec!["slow\nsim:t4: fits".to_owned()] };
        let estimate = Estimate { inference: Some(inference), peak, notes, ..loaded() };
        let cards = CARDS.iter().map(|card| (card, card.bytes.checked_sub(peak))).collect();
        EstimateFigures { estimate, cards, tried: Vec::new(), flash_attn }
    }

    #[test]
    fn two_estimates_are_side_by_side() {
        let text = human(&[figures(false, 100 << 30), figures(true, 50 << 30)], Verbosity::Normal);
        let line = |start: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(start));
            line.unwrap_or_else(|| panic!("{start}: {text}")).to_owned()
        };
        assert!(line("without flash-attention").ends_with("with flash-attention"));
        assert_eq!(line("weights").matches("100 B").count(), 4);
        let peak = line("peak");
        assert!(peak.contains("107,374,182,400 B") && peak.contains("53,687,091,200 B"), "{peak}");
        assert!(text.contains(" without flash-attention: slow\\nsim:t4"), "{text}");
        let card = line("h100-80g");
        assert!(card.contains("does not fit") && card.ends_with("29.1 GiB"), "{card}");
        assert!(line("does not fit:").contains("rtx4090"));
    }

    #[test]
    fn one_estimate_has_no_name_of_a_column() {
        let text = human(&[figures(false, 1 << 30)], Verbosity::Quiet);
        assert!(!text.contains("flash-attention") && text.contains(" slow\\nsim:t4"), "{text}");
        assert!(!text.contains("headroom"), "{text}");
    }
}
