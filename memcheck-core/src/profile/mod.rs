//! A profile: what a run with attribution says of one space, put together for
//! a reader. Pure; presentation is the command's.
//!
//! ```text
//! Attribution ──► table    a row for each operation, site or scope
//!                 holders  who held the memory at the peak, and what for
//!                 growth   what the measured iterations left behind, and why
//! ```
//!
//! Everything adds up: the peaks of the rows, of the kinds and of the holders
//! are `peak_allocated`, what rows retain is `retained`; calls and bytes are
//! those of one iteration.

mod growth;
mod holders;
mod nested;
mod row;
mod table;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::attribution::{Attribution, Place};
use crate::record::Record;
use crate::space::Space;
use crate::stack::Stack;
use memcheck_limits::names;

pub use growth::{Growth, Survivor};
pub use holders::{Held, KindSum, kinds};
pub use row::{Phase, Row, Shape, Table, Totals};

/// What a row of the table stands for.
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

/// What the rows are sorted by: the largest first, names from A to Z.
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
    /// Bytes that the measured iterations left behind, then those of the peak.
    Surviving,
    /// Bytes live when the body had returned, then those of the peak.
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

/// What calls and bytes are counted over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// The iteration with this number, warm-up counted in, from 1: the last.
    Iteration(u32),
    /// The whole body, or the whole program: there are no iterations.
    Whole,
}

/// Live bytes over the events of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// Events that one point stands for.
    pub stretch: u64,
    /// The highest number of live bytes in each stretch.
    pub points: Vec<u64>,
    /// The point of the peak.
    pub peak_at: usize,
    /// The iteration of the peak, warm-up counted in, from 1; 0 is the set-up.
    pub peak_iteration: u32,
}

/// The profile of one space.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// The space.
    pub space: Space,
    /// What calls and bytes are counted over.
    pub window: Window,
    /// Highest number of live bytes: what all peaks add up to.
    pub peak_allocated: u64,
    /// The operation table.
    pub table: Table,
    /// What the memory at the peak was for, the largest first.
    pub kinds: Vec<KindSum>,
    /// Who held it, the largest first.
    pub holders: Vec<Held>,
    /// Live bytes over time.
    pub timeline: Timeline,
    /// What the iterations left behind; `None` where there were none.
    pub growth: Option<Growth>,
}

impl Profile {
    /// The profile of `space`; `None` where nothing was followed there.
    pub fn of(record: &Record, space: Space, by: By, sort: Sort) -> Option<Self> {
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
            holders: holders::holders(attribution, space, peak),
            timeline: Timeline {
                stretch: peak.stretch,
                points: peak.timeline.clone(),
                peak_at: peak.timeline.iter().position(|&live| live == peak.bytes).unwrap_or(0),
                peak_iteration: peak.iteration,
            },
            growth: growth::growth(record, space),
        })
    }
}

/// The last iteration that anything was allocated in.
fn window(attribution: &Attribution, iterated: bool) -> Window {
    let last = attribution.places.iter().map(|place| place.last).max();
    match last.filter(|&last| iterated && last > 0) {
        Some(last) => Window::Iteration(last),
        None => Window::Whole,
    }
}

/// Part of a whole, in percent.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// The operation of a place: candle's, else its innermost function.
fn operation(attribution: &Attribution, place: &Place) -> String {
    let innermost = || attribution.stack_of(place).frames.first().map(|frame| frame.short());
    place.operation.clone().or_else(innermost).unwrap_or_else(|| "unknown".to_owned())
}

/// The line of the program that a stack goes through, and its function:
/// `src/model.rs:42 (Model::forward)`; where the program has none, the
/// innermost line.
fn site(stack: &Stack) -> String {
    let Some(frame) = stack.user().or_else(|| stack.frames.first()) else {
        return "unknown".to_owned();
    };
    match frame.short_place() {
        Some(place) => format!("{place} ({})", frame.short()),
        None => frame.path(),
    }
}
