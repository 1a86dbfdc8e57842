//! The data of one memory space of a test: its iterations, and the memory that its call sites hold.

use std::collections::{BTreeSet, HashSet};

use memcheck_core::measurement::attribution::{
    Attribution, Holder, HolderKind, Lifetimes, Peak, Survivors,
};
use memcheck_core::measurement::record::Record;
use memcheck_core::measurement::stack::{Owner, Passage, Stack};
use memcheck_core::presentation::profile::{By, Profile, Sort};
use memcheck_core::space::Space;
use serde::Serialize;

use super::baseline::Then;
use super::shown_spaces;
use super::tables::{self, TableData};
use super::tree::Tree;
use crate::presentation::presenters::profile::{
    explain_peak_difference, growth_title, kind_name, when,
};

/// Holders and survivors with call stacks. The others are one entry.
const MOST_HOLDERS: usize = 5_000;

#[derive(Debug, Serialize)]
pub(super) struct SpaceData {
    space: String,
    judged: bool,
    iterations: Option<IterationData>,
    held: Option<HeldData>,
    tables: Vec<TableData>,
}

#[derive(Debug, Serialize)]
struct IterationData {
    allocated: Vec<u64>,
    peak: Vec<u64>,
    /// The peak of the test in its baseline.
    baseline: Option<u64>,
    slope: f64,
    growth: u64,
    /// Iterations before the measured ones, which everything else counts too.
    warmup: u32,
}

/// The memory that call sites hold.
#[derive(Debug, Serialize)]
struct HeldData {
    peak: u64,
    /// `, in iteration 12`, or empty.
    when: String,
    doubt: Option<String>,
    kinds: Vec<(String, u64, u64)>,
    stretch: u64,
    timeline: Vec<u64>,
    holders: Vec<HolderData>,
    /// Bytes of the holders that are left out.
    other_holders: u64,
    growth: Option<String>,
    survivors: Vec<SurvivorData>,
    retained: Vec<HolderData>,
    /// The holders in the baseline by label; `None` if the baseline names none.
    baseline: Option<super::baseline::Holders>,
    lifetimes: Option<LifetimeData>,
}

#[derive(Debug, Serialize)]
struct HolderData {
    place: usize,
    kind: String,
    bytes: u64,
    blocks: u64,
}

#[derive(Debug, Serialize)]
struct SurvivorData {
    stack: usize,
    label: String,
    note: String,
    bytes: u64,
    blocks: u64,
    rate: u64,
    /// True if only the longer run, which decided the growth, has it in this space.
    longer: bool,
}

/// Births and deaths in columns; times are numbers of events.
#[derive(Debug, Default, Serialize)]
struct LifetimeData {
    events: u64,
    iterations: Vec<u64>,
    ended: Option<u64>,
    peak: u64,
    left_out: u64,
    stretch: u64,
    rest: Vec<u64>,
    place: Vec<usize>,
    /// Each as the difference from the birth before.
    born: Vec<i128>,
    /// The number of events until the free; 0 if the block is live at the end.
    events_lived: Vec<u64>,
    bytes: Vec<u64>,
}

pub(super) fn spaces(record: &Record, then: &Then, tree: &mut Tree) -> Vec<SpaceData> {
    shown_spaces(record)
        .into_iter()
        .map(|space| {
            let tables = tables::tables(record, space);
            let profile = Profile::without_holders(record, space, By::Op, Sort::Peak);
            SpaceData {
                space: space.to_string(),
                judged: record.judged.contains(&space),
                iterations: iterations(record, space, then),
                held: profile.as_ref().and_then(|of| held(record, space, then, of, tree)),
                tables,
            }
        })
        .collect()
}

fn iterations(record: &Record, space: Space, then: &Then) -> Option<IterationData> {
    let measured = record.spaces.get(&space).filter(|of| !of.allocated.is_empty())?;
    Some(IterationData {
        allocated: measured.allocated.clone(),
        peak: measured.peak.clone(),
        baseline: then.figure(space, "peak_allocated"),
        slope: measured.slope,
        growth: measured.metrics.growth,
        warmup: record.facts.warmup,
    })
}

fn held(
    record: &Record,
    space: Space,
    then: &Then,
    profile: &Profile,
    tree: &mut Tree,
) -> Option<HeldData> {
    let attribution = record.attribution.as_ref()?;
    let peak = attribution.peaks.get(&space)?;
    let name = |kind: HolderKind| kind_name(profile.window, kind).to_owned();
    let mut holder = |holder: &Holder| HolderData {
        place: tree.place(attribution, holder.place),
        kind: name(holder.kind),
        bytes: holder.bytes,
        blocks: holder.count,
    };
    let shown = peak.holders.len().min(MOST_HOLDERS);
    let holders = peak.holders[..shown].iter().map(&mut holder).collect();
    let is_here = |holder: &&Holder| {
        attribution.places.get(holder.place).is_some_and(|place| place.space == space)
    };
    let retained = attribution.retained.iter().filter(is_here).take(MOST_HOLDERS);
    let retained = retained.map(&mut holder).collect();
    let kinds = profile.kinds.iter().map(|sum| (name(sum.kind), sum.bytes, sum.count)).collect();
    Some(HeldData {
        peak: peak.bytes,
        when: when(profile),
        doubt: explain_peak_difference(profile, record),
        kinds,
        stretch: peak.stretch,
        timeline: peak.timeline.clone(),
        holders,
        other_holders: peak.holders[shown..].iter().map(|holder| holder.bytes).sum(),
        growth: profile.growth.as_ref().map(growth_title),
        survivors: survivors(attribution, record.longer.as_ref(), space, tree),
        retained,
        baseline: then.holders(space),
        lifetimes: lifetimes(attribution, peak, tree),
    })
}

/// Another run may have decided the growth: the longer one.
fn survivors(
    first: &Attribution,
    longer: Option<&Attribution>,
    space: Space,
    tree: &mut Tree,
) -> Vec<SurvivorData> {
    let attribution = longer.unwrap_or(first);
    let here = |of: &&Survivors| of.space == space;
    let stack_in = |of: &Survivors| Some(&first.stacks.get(of.stack)?.frames);
    let of_first: HashSet<_> = first.survivors.iter().filter(here).filter_map(stack_in).collect();
    let mut survivors: Vec<SurvivorData> = attribution
        .survivors
        .iter()
        .filter(here)
        .take(MOST_HOLDERS)
        .filter_map(|of| {
            let stack = attribution.stacks.get(of.stack)?;
            let is_new = longer.is_some() && !of_first.contains(&stack.frames);
            let tensor = of.tensors.first().map(|tensor| format!(" {tensor}"));
            let scope = (!of.scope.is_empty()).then(|| format!(" in {}", of.scope));
            let operation = stack.operation().or_else(|| without_operation(stack));
            let note = of.group.reading.describe();
            Some(SurvivorData {
                stack: tree.stack(stack),
                label: format!(
                    "{}{}{}",
                    operation.unwrap_or_else(|| "unknown".to_owned()),
                    tensor.unwrap_or_default(),
                    scope.unwrap_or_default()
                ),
                note: if is_new { format!("{note}; in the longer run only") } else { note },
                bytes: of.group.bytes(),
                blocks: of.group.count(),
                rate: of.group.reading.bytes_per_iteration,
                longer: is_new,
            })
        })
        .collect();
    survivors.sort_by_key(|of| std::cmp::Reverse((of.rate, of.bytes)));
    survivors
}

/// The name of memory that no operation of candle allocates.
fn without_operation(stack: &Stack) -> Option<String> {
    let innermost = stack.frames.first()?;
    let is_list = innermost.owner() == Owner::User && stack.through.contains(&Passage::List);
    Some(if is_list { "buffer of a list".to_owned() } else { innermost.short() })
}

fn lifetimes(attribution: &Attribution, peak: &Peak, tree: &mut Tree) -> Option<LifetimeData> {
    let Lifetimes { events, iterations, ended, peak, blocks, left_out, stretch, rest } =
        peak.lifetimes.as_ref()?;
    let mut data = LifetimeData {
        events: *events,
        iterations: iterations.clone(),
        ended: *ended,
        peak: *peak,
        left_out: *left_out,
        stretch: *stretch,
        rest: rest.clone(),
        ..LifetimeData::default()
    };
    // The largest call sites come first, so that the source of their lines is shown.
    let used: BTreeSet<usize> = blocks.iter().map(|life| life.place).collect();
    for place in used {
        tree.place(attribution, place);
    }
    let mut before = 0;
    for life in blocks {
        data.place.push(tree.place(attribution, life.place));
        data.born.push(i128::from(life.born) - before);
        data.events_lived.push(life.died.map_or(0, |died| died.saturating_sub(life.born)));
        data.bytes.push(life.bytes);
        before = life.born.into();
    }
    Some(data)
}
