//! The rows of the operation table, and their sums.

use serde::Serialize;

use super::By;
use crate::measurement::attribution::Tensor;

/// The rows of one space, and their sums.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The property that groups call sites into rows.
    pub by: By,
    /// The rows, sorted.
    pub rows: Vec<Row>,
    /// Calls and bytes of [`Phase::Iteration`]; peak, surviving and retained bytes of all rows.
    pub total: Totals,
    /// The sums of the rows in the phase [`Phase::Setup`].
    pub setup: Totals,
}

/// The sums of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Allocations.
    pub calls: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// Bytes held at the peak.
    pub peak: u64,
    /// Bytes of measured iterations that are live at the end of the last; `growth` follows.
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

/// The phase in which the call sites of a row allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// In iterations, or anywhere if the body has no iterations.
    Iteration,
    /// Only outside of iterations, mostly in the set-up.
    Setup,
}

/// Call sites with the same name and phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The operation, the line of the program or the scope.
    pub name: String,
    /// The phase in which it allocates.
    pub phase: Phase,
    /// Allocations in the iteration of the table, or in the set-up.
    pub calls: u64,
    /// Bytes of these allocations.
    pub bytes: u64,
    /// Allocations over the whole body.
    pub total_calls: u64,
    /// Bytes allocated over the whole body.
    pub total_bytes: u64,
    /// Bytes held at the peak.
    pub peak: u64,
    /// Blocks held at the peak.
    pub blocks: u64,
    /// Bytes that were allocated in measured iterations and are live at the end of the last one.
    pub surviving: u64,
    /// Bytes that are live when the body has returned.
    pub retained: u64,
    /// For a scope, its figures plus those of all scopes nested in it, in the same phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_all: Option<Totals>,
    /// The types of the tensors that it makes, the most frequent first.
    pub shapes: Vec<TensorShape>,
    /// Its operations, in descending order of bytes.
    pub operations: Vec<String>,
    /// Its paths of `tracing` spans, in descending order of bytes; empty if it is in no span.
    pub scopes: Vec<String>,
    /// Its lines of the program, in descending order of bytes.
    pub sites: Vec<String>,
}

impl Row {
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

    /// The figures of the row without nested scopes.
    pub fn figures(&self) -> Totals {
        let Self { calls, bytes, peak, surviving, retained, .. } = *self;
        Totals { calls, bytes, peak, surviving, retained }
    }
}

/// A type of tensor that a row allocates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorShape {
    /// The type.
    pub tensor: Tensor,
    /// Allocations over the whole body.
    pub calls: u64,
    /// Bytes of one allocation.
    pub bytes: u64,
}
