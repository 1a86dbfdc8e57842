//! Buffers and pools whose capacity grows by a factor, and therefore at growing intervals.

use super::events::Look;
use super::rate::{Certainty, Rate};

/// Four have three distances, which is the fewest whose growth can be compared.
const MIN_ENLARGEMENTS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: i64,
    pub(super) distance: usize,
}

impl Content {
    pub(super) fn rate(&self) -> Rate {
        let bytes = u128::from(self.bytes.unsigned_abs());
        Rate::new(bytes, self.distance as u128, Certainty::Amortized)
    }
}

/// Finds a capacity that grows geometrically in `events` of entry and bytes: in the last four,
/// distance and bytes grow by 1.2 to 4.5, bytes per distance agree within 1.6, and the last is at
/// the horizon or later. If nothing `was_before` the first event, it is the whole of a buffer, of which
/// a part may have been in another space, so that its bytes are no enlargement.
pub(super) fn amortized(events: &[(usize, i64)], was_before: bool, look: &Look) -> Option<Content> {
    let last = events.get(events.len().checked_sub(MIN_ENLARGEMENTS)?..)?;
    if last[MIN_ENLARGEMENTS - 1].0 + 1 < look.horizon {
        return None;
    }
    let grows = |before: f64, after: f64| (1.2..=4.5).contains(&(after / before));
    let distance = |at: usize| (last[at].0 - last[at - 1].0) as f64;
    let bytes = |at: usize| last[at].1 as f64;
    let first = if !was_before && events.len() == MIN_ENLARGEMENTS { 2 } else { 1 };
    let even_bytes = (first..MIN_ENLARGEMENTS).all(|at| grows(bytes(at - 1), bytes(at)));
    let even_distances = (2..MIN_ENLARGEMENTS).all(|at| grows(distance(at - 1), distance(at)));
    // The bytes of one enlargement are full when the next one comes.
    let contents = (first..MIN_ENLARGEMENTS).map(|at| bytes(at - 1) / distance(at));
    let lowest = contents.clone().fold(f64::INFINITY, f64::min);
    let highest = contents.fold(0.0, f64::max);
    (even_bytes && even_distances && highest <= 1.6 * lowest).then(|| Content {
        bytes: last[MIN_ENLARGEMENTS - 2].1,
        distance: last[MIN_ENLARGEMENTS - 1].0 - last[MIN_ENLARGEMENTS - 2].0,
    })
}
