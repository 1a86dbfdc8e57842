//! Who held the memory at the peak, and what it was for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{place, site};
use crate::attribution::{Attribution, Kind, Peak};
use crate::blame;
use crate::stack::{Frame, Stack};

/// Bytes at the peak that were for one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindSum {
    /// What they were for.
    pub kind: Kind,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
}

/// Bytes at the peak of places that read alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Operation, tensor and scope.
    pub label: String,
    /// The line of the program.
    pub site: String,
    /// What they were for.
    pub kind: Kind,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
    /// The call stack of the first of these places, the innermost frame first.
    pub stack: Vec<String>,
}

/// The peak by kind, the largest first.
pub fn kinds(peak: &Peak) -> Vec<KindSum> {
    let mut kinds: BTreeMap<Kind, (u64, u64)> = BTreeMap::new();
    for holder in &peak.holders {
        let sum = kinds.entry(holder.kind).or_default();
        sum.0 += holder.bytes;
        sum.1 += holder.count;
    }
    let mut kinds: Vec<KindSum> =
        kinds.into_iter().map(|(kind, (bytes, count))| KindSum { kind, bytes, count }).collect();
    kinds.sort_by_key(|sum| (Reverse(sum.bytes), sum.kind));
    kinds
}

/// The peak by holder, the largest first.
pub(super) fn holders(attribution: &Attribution, peak: &Peak) -> Vec<Held> {
    let mut known: BTreeMap<(String, String, Kind), Held> = BTreeMap::new();
    for holder in &peak.holders {
        let Some(place) = attribution.places.get(holder.place) else { continue };
        let stack = attribution.stack_of(place);
        let (label, site) = (blame::label(attribution, place), site(stack));
        let held = known.entry((label.clone(), site.clone(), holder.kind)).or_insert_with(|| {
            Held { label, site, kind: holder.kind, bytes: 0, count: 0, stack: lines(stack) }
        });
        held.bytes += holder.bytes;
        held.count += holder.count;
    }
    let mut holders: Vec<Held> = known.into_values().collect();
    holders.sort_by_key(|held| Reverse(held.bytes));
    holders
}

/// A stack as lines: function and place.
fn lines(stack: &Stack) -> Vec<String> {
    let line = |frame: &Frame| match place(frame) {
        Some(place) => format!("{} ({place})", frame.short()),
        None => frame.path(),
    };
    stack.frames.iter().map(line).collect()
}
