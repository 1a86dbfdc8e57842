//! What the measured iterations left behind, and what is made of it.

use serde::Serialize;

use super::site;
use crate::diagnosis::{self, Cause, Evidence, Suspect};
use crate::record::Record;
use crate::space::Space;
use crate::survivors::Pattern;

/// The growth of one space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Measured iterations.
    pub iterations: u32,
    /// Bytes an iteration, by the same evidence as a `leak`.
    pub bytes_per_iteration: u64,
    /// What made it, where it grows.
    pub cause: Option<Cause>,
    /// What the iterations left behind, the fastest growing first.
    pub survivors: Vec<Survivor>,
}

/// Survivors of one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// Operation, tensor and scope.
    pub label: String,
    /// The line of the program.
    pub site: String,
    /// The kind of growth, or of what only looks like it.
    pub pattern: Pattern,
    /// The same in words, with its figures.
    pub note: String,
    /// Bytes that survive.
    pub bytes: u64,
    /// Blocks that survive.
    pub count: u64,
    /// Bytes an iteration; 0 unless it grows.
    pub bytes_per_iteration: u64,
    /// What is known of it though it does not grow.
    pub remark: Option<Cause>,
}

/// The growth of `space`; `None` where no iteration was measured.
pub(super) fn growth(record: &Record, space: Space) -> Option<Growth> {
    if !record.iterated || record.iterations == 0 {
        return None;
    }
    let evidence = Evidence::of(record, space)?;
    Some(Growth {
        iterations: evidence.iterations,
        bytes_per_iteration: evidence.bytes_per_iteration,
        cause: diagnosis::diagnose(&evidence),
        survivors: evidence.suspects.iter().map(|suspect| survivor(suspect, &evidence)).collect(),
    })
}

fn survivor(suspect: &Suspect<'_>, evidence: &Evidence<'_>) -> Survivor {
    let Suspect { survivors, stack, reading, .. } = suspect;
    let innermost = || stack.frames.first().map(|frame| frame.short());
    let mut label = stack.operation().or_else(innermost).unwrap_or_else(|| "unknown".to_owned());
    match survivors.tensors.as_slice() {
        [] => {}
        [only] => label.push_str(&format!(" {only}")),
        [first, rest @ ..] => label.push_str(&format!(" {first} +{}", rest.len())),
    }
    if !survivors.scope.is_empty() {
        label.push_str(&format!(" in {}", survivors.scope));
    }
    Survivor {
        label,
        site: site(stack),
        pattern: reading.pattern,
        note: reading.describe(),
        bytes: survivors.group.bytes(),
        count: survivors.group.count(),
        bytes_per_iteration: reading.bytes_per_iteration,
        remark: diagnosis::remark(suspect, evidence),
    }
}
