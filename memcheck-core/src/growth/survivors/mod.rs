//! The blocks that survive the measured iterations: one group for each call site or size, with the
//! growth that [`crate::growth::lifetimes`] has decided and a pattern that a reader can recognize.
//!
//! ```text
//! pattern     growth   what happens
//! steady      yes      the same bytes in every iteration
//! periodic    yes      the same bytes in every k-th iteration
//! growing     yes      more bytes each time than before
//! irregular   yes      in no regular order, or of no regular size
//! enlarged    yes      a buffer that is replaced by a larger one, as a concatenated cache
//! amortized   yes      a buffer whose capacity grows by a factor, as that of a Vec
//! filled      no       a cache that filled and then stopped
//! replaced    no       a ring, a queue or a list that is flushed
//! last kept   no       the blocks of the last iteration or two only
//! ratchet     no       a buffer as large as the largest input so far
//! once        no       one event
//! ```

mod growth;
mod pattern;
mod trend;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use growth::{Grown, Growth, read, read_level};
pub use pattern::{Pattern, Reading};
pub use trend::{Trend, intercept, theil_sen, trend};

/// Survivors of one size or of one call site. Each series has one value per measured iteration or,
/// in a run of more than 1,024 iterations, per [`Group::epoch`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Size of one block in bytes, if all have the same size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Number of surviving blocks, by the measured iteration of their birth.
    pub births: Vec<u64>,
    /// Bytes of the surviving blocks, by the same iterations.
    pub bytes: Vec<u64>,
    /// Blocks live at the end of each measured iteration, those of set-up and warm-up included.
    pub live: Vec<u64>,
    /// Bytes of these blocks.
    pub live_bytes: Vec<u64>,
    /// Number of measured iterations before the first value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Number of iterations per value, if it is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The growth and its pattern.
    pub reading: Reading,
}

impl Group {
    /// Surviving bytes of all births.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Number of surviving blocks of all births.
    pub fn count(&self) -> u64 {
        self.births.iter().sum()
    }

    /// Number of measured iterations that the series stand for.
    pub fn iterations(&self) -> u64 {
        (self.births.len() as u64).saturating_mul(self.epoch.unwrap_or(1))
    }

    /// Adds the blocks and the growth of another group over the same iterations.
    pub fn join(&mut self, other: &Self) {
        self.reading = self.reading.merge(other.reading);
        for (sum, series) in [
            (&mut self.births, &other.births),
            (&mut self.bytes, &other.bytes),
            (&mut self.live, &other.live),
            (&mut self.live_bytes, &other.live_bytes),
        ] {
            sum.iter_mut().zip(series).for_each(|(sum, value)| *sum += value);
        }
        self.block = self.block.filter(|_| self.block == other.block);
    }
}
