//! The blocks that survive the measured iterations: one group for each call site or size, with the
//! growth that [`crate::growth::lifetimes`] has decided and a pattern that a reader can recognize.
//!
//! ```text
//! pattern     growth   what happens
//! steady      yes      the same bytes in every iteration
//! periodic    yes      the same bytes in every k-th iteration
//! growing     yes      more bytes each time than before
//! rising      yes      in every iteration, in a run that ended early
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
mod rising;
mod trend;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use growth::{Grown, Growth, read, read_level, read_rising};
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
    /// The growth of all call sites that grow by blocks of the same size, if there are others: it
    /// can repeat exactly although no site does, because threads share the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Reading>,
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

    /// Adds the blocks and the growth of another group of the same run. Only the iterations of the
    /// group that begins first are kept, as if its call site had allocated all of these blocks.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let skipped = |group: &Self| group.skipped.unwrap_or_default();
        let (mut joined, later) =
            if skipped(&self) <= skipped(&other) { (self, other) } else { (other, self) };
        let shift = (skipped(&later) - skipped(&joined)) / joined.epoch.unwrap_or(1);
        let shift = usize::try_from(shift).unwrap_or(usize::MAX);
        let (births, bytes) = (shifted(&later.births, shift, 0), shifted(&later.bytes, shift, 0));
        // Before its first surviving block only older ones were live.
        let older = |live: &[u64], born: &[u64]| match (live.first(), born.first()) {
            (Some(live), Some(born)) => live.saturating_sub(*born),
            _ => 0,
        };
        let before = older(&later.live, &later.births);
        let bytes_before = older(&later.live_bytes, &later.bytes);
        let has_blocks =
            before > 0 || births.clone().take(joined.births.len()).any(|born| born > 0);
        if has_blocks {
            joined.block = joined.block.filter(|_| joined.block == later.block);
        }
        let (live, live_bytes) =
            (shifted(&later.live, shift, before), shifted(&later.live_bytes, shift, bytes_before));
        add(&mut joined.births, births);
        add(&mut joined.bytes, bytes);
        add(&mut joined.live, live);
        add(&mut joined.live_bytes, live_bytes);
        // A group that does not grow has no part in what others share.
        joined.shared = match (joined.reading.grows(), later.reading.grows()) {
            (true, true) => joined.shared.filter(|_| joined.shared == later.shared),
            (false, true) => later.shared,
            (_, false) => joined.shared,
        };
        joined.reading = joined.reading.merge(later.reading);
        if let Some(shared) = joined.shared
            && shared.bytes_per_iteration == joined.reading.bytes_per_iteration
        {
            joined.reading = shared;
        }
        joined
    }
}

/// `series`, in which each value comes `shift` entries later, with `before` as the values before it.
fn shifted(
    series: &[u64],
    shift: usize,
    before: u64,
) -> impl Iterator<Item = u64> + Clone + use<'_> {
    std::iter::repeat_n(before, shift).chain(series.iter().copied())
}

fn add(sum: &mut [u64], series: impl Iterator<Item = u64>) {
    sum.iter_mut().zip(series).for_each(|(sum, value)| *sum += value);
}
