//! The survivors of the measured iterations, and the decision about growth.

use serde::Serialize;

use super::site;
use crate::growth::survivors::Pattern;
use crate::judgement::blame::{self, SiteGroup};
use crate::judgement::diagnosis::{self, Cause, Evidence};
use crate::measurement::record::Record;
use crate::space::Space;

/// The growth of one space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrowthProfile {
    /// Measured iterations.
    pub iterations: u32,
    /// Bytes per iteration, from the same evidence as a `leak`.
    pub bytes_per_iteration: u64,
    /// Live bytes at the end of each measured iteration.
    pub allocated: Vec<u64>,
    /// The recognized cause, if the space grows.
    pub cause: Option<Cause>,
    /// The survivors of the iterations, the fastest growing first.
    pub survivors: Vec<Survivor>,
}

/// Survivors of call sites that look the same in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// Operation, tensor and scope.
    pub label: String,
    /// The line of the program.
    pub site: String,
    /// The pattern of growth, or the pattern that only resembles growth.
    pub pattern: Pattern,
    /// The pattern in words, with its figures.
    pub note: String,
    /// Bytes that survive.
    pub bytes: u64,
    /// Blocks that survive.
    pub count: u64,
    /// Bytes per iteration; 0 unless it grows.
    pub bytes_per_iteration: u64,
    /// A remark on survivors that do not grow.
    pub remark: Option<Cause>,
}

/// The growth of `space`; `None` if no iteration was measured.
pub(super) fn growth(record: &Record, space: Space) -> Option<GrowthProfile> {
    if !record.iterated || record.iterations == 0 {
        return None;
    }
    let evidence = Evidence::of(record, space)?;
    Some(GrowthProfile {
        iterations: evidence.iterations,
        bytes_per_iteration: evidence.bytes_per_iteration,
        allocated: evidence.measured.allocated.clone(),
        cause: diagnosis::diagnose(&evidence),
        survivors: blame::alike(&evidence.suspects)
            .iter()
            .map(|alike| survivor(alike, &evidence))
            .collect(),
    })
}

fn survivor(alike: &SiteGroup<'_, '_>, evidence: &Evidence<'_>) -> Survivor {
    let first = alike.suspects[0];
    Survivor {
        label: blame::label(&blame::surviving(alike)),
        site: site(first.stack),
        pattern: alike.reading.pattern,
        note: alike.reading.describe(),
        bytes: alike.bytes(),
        count: alike.count(),
        bytes_per_iteration: alike.reading.bytes_per_iteration,
        remark: diagnosis::remark(&alike.suspects, evidence),
    }
}
