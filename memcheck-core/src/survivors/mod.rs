//! The blocks that measured iterations leave behind: one group for each call site or
//! size, with its growth as [`crate::lifetimes`] decided it, and a pattern that a
//! reader can recognise.
//!
//! ```text
//! pattern     growth   what happens
//! steady      yes      the same bytes in every iteration
//! periodic    yes      the same bytes in every k-th iteration
//! growing     yes      more bytes each time than before
//! irregular   yes      in no regular order, or of no regular size
//! enlarged    yes      a buffer that is replaced by a larger one, as a concatenated cache
//! amortised   yes      a buffer whose capacity grows by a factor, as that of a Vec
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

pub use growth::{Grown, Growth, read};
pub use pattern::{Pattern, Reading};
pub use trend::{Trend, intercept, theil_sen, trend};

/// Survivors of the measured iterations that belong together: blocks of one size, or
/// blocks of one call site. Every series has one value for each measured iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Size of one block in bytes, where all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Surviving blocks by the measured iteration that they were born in.
    pub births: Vec<u64>,
    /// Their bytes, by the same iterations.
    pub bytes: Vec<u64>,
    /// Blocks that were live at the end of each measured iteration, whenever they were
    /// born.
    pub live: Vec<u64>,
    /// Their bytes.
    pub live_bytes: Vec<u64>,
    /// Its growth, and the pattern of it.
    pub reading: Reading,
}

impl Group {
    /// Bytes that survive, all births together.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Blocks that survive, all births together.
    pub fn count(&self) -> u64 {
        self.births.iter().sum()
    }

    /// Adds the blocks and the growth of another group over the same iterations.
    pub fn join(&mut self, other: &Self) {
        self.reading = self.reading.beside(other.reading);
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
