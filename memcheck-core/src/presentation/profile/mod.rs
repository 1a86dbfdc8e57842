//! A profile: the attribution of one space, arranged for a reader. The command prints it.
//!
//! ```text
//! Attribution ──► table    a row for each operation, site or scope
//!                 holders  who held the memory at the peak, and what for
//!                 growth   what the measured iterations left behind, and why
//! ```
//!
//! All parts add up: the peaks of the rows, of the kinds and of the holders to `peak_allocated`,
//! and the retained bytes of the rows to `retained`. Calls and bytes are those of one iteration.

mod growth;
mod holders;
mod nested;
mod row;
mod table;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::measurement::attribution::{Attribution, Place};
use crate::measurement::record::Record;
use crate::measurement::stack::Stack;
use crate::space::Space;
use memcheck_limits::names;

pub use growth::{GrowthProfile, Survivor};
pub use holders::{HeldRow, KindSum, kinds};
pub use row::{Phase, Row, Table, TensorShape, Totals};

/// The property that groups call sites into rows of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// An operation of candle.
    #[default]
    Op,
    /// A line of the program.
    Site,
    /// A path of `tracing` spans.
    Scope,
}

names!(By { "op" => Op, "site" => Site, "scope" => Scope });

/// The key that rows are sorted by: the largest value first, names from A to Z.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Number of allocations.
    Calls,
    /// Bytes allocated.
    Bytes,
    /// Bytes held at the peak, then bytes allocated.
    #[default]
    Peak,
    /// Bytes of survivors of the measured iterations, then bytes held at the peak.
    Surviving,
    /// Bytes live when the body had returned, then bytes held at the peak.
    Retained,
    /// The name.
    Name,
}

names!(Sort {
    "calls" => Calls,
    "bytes" => Bytes,
    "peak" => Peak,
    "surviving" => Surviving,
    "retained" => Retained,
    "name" => Name,
});

/// The part of the run in which calls and bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// The last iteration, with this number, counted from 1 with the warm-up included.
    Iteration(u32),
    /// The whole body or program, because it has no iterations.
    Whole,
}

/// Live bytes over the events of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProfileTimeline {
    /// The number of events that one point covers.
    pub stretch: u64,
    /// The highest number of live bytes in each stretch.
    pub points: Vec<u64>,
    /// The index of the point of the peak.
    pub peak_at: usize,
    /// The iteration of the peak, counted from 1 with the warm-up included; 0 is the set-up.
    pub peak_iteration: u32,
}

/// The profile of one space.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// The space.
    pub space: Space,
    /// The part of the run in which calls and bytes are counted.
    pub window: Window,
    /// Highest number of live bytes. The peaks of rows, kinds and holders add up to it.
    pub peak_allocated: u64,
    /// The operation table.
    pub table: Table,
    /// The bytes at the peak by purpose, the largest first.
    pub kinds: Vec<KindSum>,
    /// The bytes at the peak by call site, the largest first.
    pub holders: Vec<HeldRow>,
    /// Live bytes over time.
    pub timeline: ProfileTimeline,
    /// The survivors of the iterations; `None` if there were no iterations.
    pub growth: Option<GrowthProfile>,
}

impl Profile {
    /// The profile of `space`; `None` if the run did not follow the space.
    pub fn of(record: &Record, space: Space, by: By, sort: Sort) -> Option<Self> {
        let profile = Self::without_holders(record, space, by, sort)?;
        let attribution = record.attribution.as_ref()?;
        let holders = holders::holders(attribution, space, attribution.peaks.get(&space)?);
        Some(Self { holders, ..profile })
    }

    /// The same with an empty list of holders, which takes most of the time of a profile.
    pub fn without_holders(record: &Record, space: Space, by: By, sort: Sort) -> Option<Self> {
        let attribution = record.attribution.as_ref()?;
        let peak = attribution.peaks.get(&space)?;
        let window = window(attribution, record.iterated);
        let kinds = holders::kinds(peak);
        let retained = record.spaces.get(&space).map_or(0, |measured| measured.metrics.retained);
        Some(Self {
            space,
            window,
            peak_allocated: peak.bytes,
            table: table::table(attribution, (space, retained), window, by, sort),
            kinds,
            holders: Vec::new(),
            timeline: ProfileTimeline {
                stretch: peak.stretch,
                points: peak.timeline.clone(),
                peak_at: peak.timeline.iter().position(|&live| live == peak.bytes).unwrap_or(0),
                peak_iteration: peak.iteration,
            },
            growth: growth::growth(record, space),
        })
    }
}

fn window(attribution: &Attribution, iterated: bool) -> Window {
    let last = attribution.places.iter().map(|place| place.last).max();
    match last.filter(|&last| iterated && last > 0) {
        Some(last) => Window::Iteration(last),
        None => Window::Whole,
    }
}

/// `part` as a percentage of `whole`; 0 if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// The candle operation of a call site or, without one, its innermost function.
fn operation(attribution: &Attribution, place: &Place) -> String {
    let innermost = || attribution.stack_of(place).frames.first().map(|frame| frame.short());
    place.operation.clone().or_else(innermost).unwrap_or_else(|| "unknown".to_owned())
}

/// `src/model.rs:42 (Model::forward)`; without a frame of the program, the innermost line.
fn site(stack: &Stack) -> String {
    let Some(frame) = stack.user().or_else(|| stack.frames.first()) else {
        return "unknown".to_owned();
    };
    match frame.short_place() {
        Some(place) => format!("{place} ({})", frame.short()),
        None => frame.path(),
    }
}
