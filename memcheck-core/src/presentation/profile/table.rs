//! The operation table: one row for each name and phase. Survivors are known without their tensor,
//! so they are added to the first call site with their stack and scope.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::row::{Phase, Row, Table, TensorShape, Totals};
use super::{By, Sort, Window, nested, operation, site};
use crate::measurement::attribution::{Attribution, Holder, Place, Tensor};
use crate::space::Space;

struct SiteEntry<'a> {
    place: &'a Place,
    phase: Phase,
    calls: u64,
    bytes: u64,
    peak: u64,
    blocks: u64,
    surviving: u64,
    retained: u64,
}

/// Bytes that no call site accounts for are a separate row, so that the columns add up.
pub(super) fn table(
    attribution: &Attribution,
    (space, retained): (Space, u64),
    window: Window,
    by: By,
    sort: Sort,
) -> Table {
    let peak = attribution.peaks.get(&space);
    let at_peak = sum_by_place(peak.map(|peak| peak.holders.as_slice()).unwrap_or_default());
    let at_end = sum_by_place(&attribution.retained);
    let mut surviving = surviving(attribution, space);
    let whole = Totals {
        peak: peak.map_or(0, |peak| peak.bytes),
        surviving: surviving.values().sum(),
        retained,
        ..Totals::default()
    };
    let mut groups: BTreeMap<(String, Phase), Vec<SiteEntry<'_>>> = BTreeMap::new();
    for (number, place) in attribution.places.iter().enumerate() {
        if place.space != space {
            continue;
        }
        let mut entry = entry(place, window);
        (entry.peak, entry.blocks) = at_peak.get(&number).copied().unwrap_or_default();
        (entry.retained, _) = at_end.get(&number).copied().unwrap_or_default();
        if entry.phase == Phase::Iteration {
            let left = surviving.remove(&(place.stack, place.scope.as_str()));
            entry.surviving = left.unwrap_or_default();
        }
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
    rows.extend(unplaced_row(whole, Totals::of(&rows)));
    if by == By::Scope {
        nested::add(&mut rows);
    }
    rows.sort_by(|a, b| compare(a, b, sort));
    let totals_of = |phase| Totals::of(rows.iter().filter(|row| row.phase == phase));
    let (total, setup) = (totals_of(Phase::Iteration), totals_of(Phase::Setup));
    let Totals { calls, bytes, .. } = total;
    Table { by, total: Totals { calls, bytes, ..total + setup }, setup, rows }
}

fn sum_by_place(holders: &[Holder]) -> BTreeMap<usize, (u64, u64)> {
    let mut held: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for holder in holders {
        let sum = held.entry(holder.place).or_default();
        sum.0 += holder.bytes;
        sum.1 += holder.count;
    }
    held
}

fn surviving(attribution: &Attribution, space: Space) -> BTreeMap<(usize, &str), u64> {
    let mut surviving: BTreeMap<(usize, &str), u64> = BTreeMap::new();
    for survivors in attribution.survivors.iter().filter(|survivors| survivors.space == space) {
        let place = (survivors.stack, survivors.scope.as_str());
        *surviving.entry(place).or_default() += survivors.group.bytes();
    }
    surviving
}

/// A call site with its phase and allocations. The caller must set the bytes that it held.
fn entry(place: &Place, window: Window) -> SiteEntry<'_> {
    let (phase, calls, bytes) = match window {
        Window::Whole => (Phase::Iteration, place.calls, place.bytes),
        Window::Iteration(_) if place.last == 0 => (Phase::Setup, place.calls, place.bytes),
        Window::Iteration(last) if place.last == last => {
            (Phase::Iteration, place.last_calls, place.last_bytes)
        }
        // The call site does not allocate in every iteration, and did not in this one.
        Window::Iteration(_) => (Phase::Iteration, 0, 0),
    };
    SiteEntry { place, phase, calls, bytes, peak: 0, blocks: 0, surviving: 0, retained: 0 }
}

fn row(attribution: &Attribution, name: String, phase: Phase, entries: &[SiteEntry<'_>]) -> Row {
    let sum = |pick: fn(&SiteEntry<'_>) -> u64| entries.iter().map(pick).sum();
    let mut shapes: BTreeMap<&Tensor, (u64, u64)> = BTreeMap::new();
    for SiteEntry { place, .. } in entries {
        if let Some(tensor) = &place.tensor {
            let known = shapes.entry(tensor).or_default();
            known.0 += place.calls;
            known.1 = known.1.max(place.bytes / place.calls.max(1));
        }
    }
    let mut shapes: Vec<TensorShape> = shapes
        .into_iter()
        .map(|(tensor, (calls, bytes))| TensorShape { tensor: tensor.clone(), calls, bytes })
        .collect();
    shapes.sort_by_key(|shape| (Reverse(shape.calls), Reverse(shape.bytes)));
    let scopes = names_by_bytes(entries, |place| place.scope.clone());
    Row {
        calls: sum(|entry| entry.calls),
        bytes: sum(|entry| entry.bytes),
        total_calls: sum(|entry| entry.place.calls),
        total_bytes: sum(|entry| entry.place.bytes),
        peak: sum(|entry| entry.peak),
        blocks: sum(|entry| entry.blocks),
        surviving: sum(|entry| entry.surviving),
        retained: sum(|entry| entry.retained),
        shapes,
        operations: names_by_bytes(entries, |place| operation(attribution, place)),
        scopes: scopes.into_iter().filter(|scope| !scope.is_empty()).collect(),
        sites: names_by_bytes(entries, |place| site(attribution.stack_of(place))),
        ..Row::named(name, phase)
    }
}

/// In descending order of bytes held at the peak, then of bytes allocated.
fn names_by_bytes(entries: &[SiteEntry<'_>], name: impl Fn(&Place) -> String) -> Vec<String> {
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

/// Such bytes were allocated by code that is not followed, or before the run began to follow.
fn unplaced_row(whole: Totals, known: Totals) -> Option<Row> {
    let row = Row {
        peak: whole.peak.saturating_sub(known.peak),
        surviving: whole.surviving.saturating_sub(known.surviving),
        retained: whole.retained.saturating_sub(known.retained),
        ..Row::named("(unplaced)".to_owned(), Phase::Setup)
    };
    (row.figures() != Totals::default()).then_some(row)
}

/// Scopes are compared with all nested scopes, so that outer scopes come first.
fn compare(a: &Row, b: &Row, sort: Sort) -> std::cmp::Ordering {
    let by_name = || a.name.cmp(&b.name).then(a.phase.cmp(&b.phase));
    let [a, b] = [a, b].map(|row| row.in_all.unwrap_or_else(|| row.figures()));
    match sort {
        Sort::Calls => b.calls.cmp(&a.calls).then(b.bytes.cmp(&a.bytes)),
        Sort::Bytes => b.bytes.cmp(&a.bytes).then(b.peak.cmp(&a.peak)),
        Sort::Peak => b.peak.cmp(&a.peak).then(b.bytes.cmp(&a.bytes)),
        Sort::Surviving => b.surviving.cmp(&a.surviving).then(b.peak.cmp(&a.peak)),
        Sort::Retained => b.retained.cmp(&a.retained).then(b.peak.cmp(&a.peak)),
        Sort::Name => std::cmp::Ordering::Equal,
    }
    .then_with(by_name)
}
