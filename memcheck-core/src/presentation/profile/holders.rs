//! The bytes at the peak by call site, and their purpose.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::site;
use crate::judgement::blame;
use crate::judgement::finding::Site;
use crate::measurement::attribution::{Attribution, HolderKind, Peak};
use crate::measurement::stack::{Frame, Stack};
use crate::space::Space;

/// The bytes at the peak that have one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindSum {
    /// The purpose.
    pub kind: HolderKind,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
}

/// The bytes at the peak of call sites that look the same in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldRow {
    /// Operation, tensor and scope.
    pub label: String,
    /// The line of the program.
    pub site: String,
    /// The purpose of the bytes.
    pub kind: HolderKind,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
    /// The call stack of the first of these call sites, the innermost frame first.
    pub stack: Vec<String>,
}

/// The peak by purpose, the largest first.
pub fn kinds(peak: &Peak) -> Vec<KindSum> {
    let mut kinds: BTreeMap<HolderKind, (u64, u64)> = BTreeMap::new();
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

pub(super) fn holders(attribution: &Attribution, space: Space, peak: &Peak) -> Vec<HeldRow> {
    let held = |(kind, found): (HolderKind, Site)| {
        let label = blame::label(&found);
        let stack = Stack { frames: found.stack, ..Stack::default() };
        HeldRow {
            label,
            site: site(&stack),
            kind,
            bytes: found.bytes,
            count: found.count,
            stack: lines(&stack),
        }
    };
    blame::holding(attribution, space, &peak.holders).into_iter().map(held).collect()
}

fn lines(stack: &Stack) -> Vec<String> {
    stack.frames.iter().map(Frame::shown).collect()
}
