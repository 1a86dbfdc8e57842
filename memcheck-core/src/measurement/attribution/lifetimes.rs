//! The births and deaths of single blocks in one space. Time is the number of the allocation or
//! free in that space, from 1, which is the same in every run.

use serde::{Deserialize, Serialize};

/// The most blocks that a run stores for one space. Of more blocks, the largest are stored.
pub const MOST_BLOCKS: usize = 50_000;

/// The life of one block. Blocks of one call site, size and iteration are interchangeable: of
/// these, the first to be allocated counts as the first to be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(usize, u64, Option<u64>, u64)", from = "(usize, u64, Option<u64>, u64)")]
pub struct Lifetime {
    /// The call site, an index into [`super::Attribution::places`].
    pub place: usize,
    /// The number of the event that allocated it.
    pub born: u64,
    /// The number of the event that freed it; `None` if it is live at the end.
    pub died: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

impl From<Lifetime> for (usize, u64, Option<u64>, u64) {
    fn from(life: Lifetime) -> Self {
        (life.place, life.born, life.died, life.bytes)
    }
}

impl From<(usize, u64, Option<u64>, u64)> for Lifetime {
    fn from((place, born, died, bytes): (usize, u64, Option<u64>, u64)) -> Self {
        Self { place, born, died, bytes }
    }
}

/// The blocks of one space over time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifetimes {
    /// Allocations and frees in the space.
    pub events: u64,
    /// The number of events before each iteration, warm-up included.
    pub iterations: Vec<u64>,
    /// The number of events before the end of the last iteration; `None` without iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// The number of the event that reached the peak; 0 if no block was allocated.
    pub peak: u64,
    /// The largest blocks, in the order of their births.
    pub blocks: Vec<Lifetime>,
    /// The number of smaller blocks that are not stored.
    #[serde(default)]
    pub left_out: u64,
    /// The number of events between two values of [`Self::rest`].
    #[serde(default)]
    pub stretch: u64,
    /// Live bytes of the blocks that are not stored, after each `stretch` events; empty if all
    /// blocks are stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<u64>,
}
