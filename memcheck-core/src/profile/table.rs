//! The operation table: places that are alike are one row.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{By, Sort, Window, operation, site};
use crate::attribution::{Attribution, Place, Tensor};
use crate::space::Space;

/// The rows of a space, and their sums.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What a row stands for.
    pub by: By,
    /// The rows, sorted.
    pub rows: Vec<Row>,
    /// The sums of an iteration's rows, and the peak of all rows. Where nothing
    /// iterates, the sums of all rows.
    pub total: Totals,
    /// The sums of the rows outside the iterations.
    pub setup: Totals,
}

/// Sums of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Allocations.
    pub calls: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// Bytes held at the peak.
    pub peak: u64,
}

impl Totals {
    /// The sums of these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        rows.into_iter().fold(Self::default(), |sum, row| Self {
            calls: sum.calls + row.calls,
            bytes: sum.bytes + row.bytes,
            peak: sum.peak + row.peak,
        })
    }
}

/// When the places of a row allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// In iterations; or the body has none.
    Iteration,
    /// Outside the iterations only: in the set-up, mostly.
    Setup,
}

/// Places that are alike, in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The operation, the line of the program or the scope.
    pub name: String,
    /// When it allocates.
    pub phase: Phase,
    /// Allocations: in the iteration that the table is about, or in the set-up.
    pub calls: u64,
    /// Bytes allocated there.
    pub bytes: u64,
    /// Allocations over the whole body.
    pub total_calls: u64,
    /// Bytes allocated over the whole body.
    pub total_bytes: u64,
    /// Bytes held at the peak.
    pub peak: u64,
    /// Blocks held at the peak.
    pub blocks: u64,
    /// The types of tensor that are made, the most common first.
    pub shapes: Vec<Shape>,
    /// Operations, the weightiest first.
    pub operations: Vec<String>,
    /// Paths of `tracing` spans, the weightiest first; empty for none.
    pub scopes: Vec<String>,
    /// Lines of the program, the weightiest first.
    pub sites: Vec<String>,
}

/// A type of tensor among the allocations of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// The type.
    pub tensor: Tensor,
    /// Allocations over the whole body.
    pub calls: u64,
    /// Bytes of one.
    pub bytes: u64,
}

/// One place, with what the table wants of it.
struct Entry<'a> {
    place: &'a Place,
    phase: Phase,
    calls: u64,
    bytes: u64,
    peak: u64,
    blocks: u64,
}

/// The table of `space`. Holders that the record left out are a row of their
/// own, so that the peaks add up.
pub(super) fn table(
    attribution: &Attribution,
    space: Space,
    window: Window,
    by: By,
    sort: Sort,
) -> Table {
    let held = held(attribution, space);
    let mut groups: BTreeMap<(String, Phase), Vec<Entry<'_>>> = BTreeMap::new();
    for (number, place) in attribution.places.iter().enumerate() {
        if place.space != space {
            continue;
        }
        let (peak, blocks) = held.get(&number).copied().unwrap_or_default();
        let entry = entry(place, window, peak, blocks);
        let name = match by {
            By::Op => operation(attribution, place),
            By::Site => site(attribution.stack_of(place)),
            By::Scope if place.scope.is_empty() => "(none)".to_owned(),
            By::Scope => place.scope.clone(),
        };
        groups.entry((name, entry.phase)).or_default().push(entry);
    }
    let mut rows: Vec<Row> = groups
        .into_iter()
        .map(|((name, phase), entries)| row(attribution, name, phase, &entries))
        .collect();
    let known: u64 = rows.iter().map(|row| row.peak).sum();
    let peak = attribution.peaks.get(&space).map_or(0, |peak| peak.bytes);
    if peak > known {
        rows.push(left_out(peak - known));
    }
    rows.sort_by(|a, b| compare(a, b, sort));
    let of = |phase| Totals::of(rows.iter().filter(|row| row.phase == phase));
    let (total, setup) = (of(Phase::Iteration), of(Phase::Setup));
    Table { by, total: Totals { peak: total.peak + setup.peak, ..total }, setup, rows }
}

/// Bytes and blocks that each place held at the peak.
fn held(attribution: &Attribution, space: Space) -> BTreeMap<usize, (u64, u64)> {
    let mut held: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for holder in attribution.peaks.get(&space).into_iter().flat_map(|peak| &peak.holders) {
        let sum = held.entry(holder.place).or_default();
        sum.0 += holder.bytes;
        sum.1 += holder.count;
    }
    held
}

fn entry(place: &Place, window: Window, peak: u64, blocks: u64) -> Entry<'_> {
    let (phase, calls, bytes) = match window {
        Window::Whole => (Phase::Iteration, place.calls, place.bytes),
        Window::Iteration(_) if place.last == 0 => (Phase::Setup, place.calls, place.bytes),
        Window::Iteration(last) if place.last == last => {
            (Phase::Iteration, place.last_calls, place.last_bytes)
        }
        // Not in every iteration: not in this one.
        Window::Iteration(_) => (Phase::Iteration, 0, 0),
    };
    Entry { place, phase, calls, bytes, peak, blocks }
}

fn row(attribution: &Attribution, name: String, phase: Phase, entries: &[Entry<'_>]) -> Row {
    let sum = |pick: fn(&Entry<'_>) -> u64| entries.iter().map(pick).sum();
    let mut shapes: BTreeMap<&Tensor, (u64, u64)> = BTreeMap::new();
    for Entry { place, .. } in entries {
        if let Some(tensor) = &place.tensor {
            let known = shapes.entry(tensor).or_default();
            known.0 += place.calls;
            known.1 = known.1.max(place.bytes / place.calls.max(1));
        }
    }
    let mut shapes: Vec<Shape> = shapes
        .into_iter()
        .map(|(tensor, (calls, bytes))| Shape { tensor: tensor.clone(), calls, bytes })
        .collect();
    shapes.sort_by_key(|shape| (Reverse(shape.calls), Reverse(shape.bytes)));
    let scopes = by_weight(entries, |place| place.scope.clone());
    Row {
        name,
        phase,
        calls: sum(|entry| entry.calls),
        bytes: sum(|entry| entry.bytes),
        total_calls: sum(|entry| entry.place.calls),
        total_bytes: sum(|entry| entry.place.bytes),
        peak: sum(|entry| entry.peak),
        blocks: sum(|entry| entry.blocks),
        shapes,
        operations: by_weight(entries, |place| operation(attribution, place)),
        scopes: scopes.into_iter().filter(|scope| !scope.is_empty()).collect(),
        sites: by_weight(entries, |place| site(attribution.stack_of(place))),
    }
}

/// The different names among places, those with most bytes first.
fn by_weight(entries: &[Entry<'_>], name: impl Fn(&Place) -> String) -> Vec<String> {
    let mut weights: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for entry in entries {
        let weight = weights.entry(name(entry.place)).or_default();
        weight.0 += entry.peak;
        weight.1 += entry.place.bytes;
    }
    let mut names: Vec<(String, (u64, u64))> = weights.into_iter().collect();
    names.sort_by_key(|(_, weight)| Reverse(*weight));
    names.into_iter().map(|(name, _)| name).collect()
}

/// What the record says nothing more of than its bytes.
fn left_out(peak: u64) -> Row {
    Row {
        name: "(smaller places)".to_owned(),
        phase: Phase::Setup,
        calls: 0,
        bytes: 0,
        total_calls: 0,
        total_bytes: 0,
        peak,
        blocks: 0,
        shapes: Vec::new(),
        operations: Vec::new(),
        scopes: Vec::new(),
        sites: Vec::new(),
    }
}

fn compare(a: &Row, b: &Row, sort: Sort) -> std::cmp::Ordering {
    let by_name = || a.name.cmp(&b.name).then(a.phase.cmp(&b.phase));
    match sort {
        Sort::Calls => b.calls.cmp(&a.calls).then(b.bytes.cmp(&a.bytes)),
        Sort::Bytes => b.bytes.cmp(&a.bytes).then(b.peak.cmp(&a.peak)),
        Sort::Peak => b.peak.cmp(&a.peak).then(b.bytes.cmp(&a.bytes)),
        Sort::Name => std::cmp::Ordering::Equal,
    }
    .then_with(by_name)
}
