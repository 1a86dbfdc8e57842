//! A row of the operation table, and the sums of rows.

use serde::Serialize;

use super::By;
use crate::attribution::Tensor;

/// The rows of a space, and their sums.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What a row stands for.
    pub by: By,
    /// The rows, sorted.
    pub rows: Vec<Row>,
    /// The sums of an iteration's rows; of peak, surviving and retained bytes
    /// the sums of all rows. Where nothing iterates, the sums of all rows.
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
    /// Bytes that were allocated in measured iterations and are live at the end
    /// of the last: what `growth` is made of.
    pub surviving: u64,
    /// Bytes that are live when the body has returned: the metric `retained`.
    pub retained: u64,
}

impl Totals {
    /// The sums of these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        rows.into_iter().fold(Self::default(), |sum, row| sum + row.figures())
    }
}

impl std::ops::Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
            peak: self.peak + other.peak,
            surviving: self.surviving + other.surviving,
            retained: self.retained + other.retained,
        }
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
    /// Bytes that were allocated in measured iterations and are live at the end
    /// of the last.
    pub surviving: u64,
    /// Bytes that are live when the body has returned.
    pub retained: u64,
    /// Of a scope: the figures of its row and of all scopes nested in it, of the
    /// same phase. All other figures of a row are its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_all: Option<Totals>,
    /// The types of tensor that are made, the most common first.
    pub shapes: Vec<Shape>,
    /// Operations, the weightiest first.
    pub operations: Vec<String>,
    /// Paths of `tracing` spans, the weightiest first; empty for none.
    pub scopes: Vec<String>,
    /// Lines of the program, the weightiest first.
    pub sites: Vec<String>,
}

impl Row {
    /// A row with a name and nothing else.
    pub(super) fn named(name: String, phase: Phase) -> Self {
        Self {
            name,
            phase,
            calls: 0,
            bytes: 0,
            total_calls: 0,
            total_bytes: 0,
            peak: 0,
            blocks: 0,
            surviving: 0,
            retained: 0,
            in_all: None,
            shapes: Vec::new(),
            operations: Vec::new(),
            scopes: Vec::new(),
            sites: Vec::new(),
        }
    }

    /// Its own figures.
    pub fn figures(&self) -> Totals {
        let Self { calls, bytes, peak, surviving, retained, .. } = *self;
        Totals { calls, bytes, peak, surviving, retained }
    }
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
