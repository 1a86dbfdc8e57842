//! Compares a test with the tests whose figures it needs: findings, laws, and the baseline of the
//! laws.

use std::path::Path;

use super::{
    Compared, DeviceRoom, MeasuredRuns, Needs, Other, compare, members_of_runs, scaling,
    scaling_reports, unchanged,
};
use crate::judgement::baseline::Laws;
use crate::judgement::finding::{Code, Finding};
use crate::judgement::snapshot::NewSnapshot;
use crate::judgement::verdict::is_worth_keeping;
use crate::measurement::record::{Outcome, Record};
use crate::shape::{Scaling, ScalingReport};
use crate::space::Space;

/// The other tests, for one that needs their figures.
pub struct OtherTests<'a> {
    /// Which of them it needs.
    pub needs: &'a Needs,
    /// The limits on how fast figures may grow over its cases.
    pub scaling: &'a [Scaling],
    /// The accepted laws, as [`super::accepted_laws`] returns them.
    pub accepted: Option<Result<Laws, String>>,
    /// The source file of the test, relative to the workspace.
    pub source: &'a Path,
    /// The runs of another test, or the reason why they cannot be compared with a record.
    pub runs_of: &'a dyn Fn(&Other, &Record) -> Result<MeasuredRuns, String>,
}

impl std::fmt::Debug for OtherTests<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherTests").field("needs", self.needs).finish_non_exhaustive()
    }
}

/// What they say about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Across {
    /// The findings.
    pub findings: Vec<Finding>,
    /// True if its figures must not become the baseline.
    pub too_much: bool,
    /// The laws over its cases.
    pub laws: Vec<ScalingReport>,
    /// The change of the pending snapshot of these laws; `None` if it stays as it is.
    pub law: Option<PendingLaw>,
}

impl Across {
    /// The text of the pending snapshot of the laws.
    pub fn text(&self) -> Option<&str> {
        match &self.law {
            Some(PendingLaw::Written(text)) => Some(text),
            Some(PendingLaw::Removed) | None => None,
        }
    }
}

/// A change of the pending snapshot of laws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingLaw {
    /// It gets this text.
    Written(String),
    /// It is removed, because the accepted laws hold, or because the test failed.
    Removed,
}

/// True if other tests can use the figures of a record, and it can be compared with theirs. Broken
/// limits do not matter here.
pub fn has_figures(record: &Record, has: impl Fn(Code) -> bool) -> bool {
    let whole = record.outcome == Outcome::Returned || record.should_panic.is_some();
    whole && ![Code::NotMeasured, Code::Crashed, Code::TestFailed].into_iter().any(has)
}

/// Compares a test with the tests whose figures it needs. `own` are its findings without them.
pub fn across(record: &Record, own: &[Finding], others: &OtherTests<'_>) -> Across {
    let OtherTests { needs, accepted, .. } = others;
    let has_own = |code| own.iter().any(|finding| finding.code == code);
    if !has_figures(record, has_own) {
        return Across::default();
    }
    let Compared { mut findings, members: known } =
        compare(record, needs, |other| (others.runs_of)(other, record));
    let runs = members_of_runs(&known);
    let laws_of_runs: Vec<Vec<ScalingReport>> = runs
        .iter()
        .map(|run| scaling_reports(run, others.scaling, |space| room(record, space)))
        .collect();
    // The first run of each case is that of its figures.
    let laws = laws_of_runs.first().cloned().unwrap_or_default();
    let members = runs.first().map_or(&[][..], Vec::as_slice);
    let usable = accepted.as_ref().and_then(|laws| laws.as_ref().ok());
    findings.extend(scaling(&laws_of_runs, usable, record));
    let too_much = findings.iter().any(|finding| match finding.code {
        Code::PeakLimit | Code::Unstable => true,
        // A law that only differs from the accepted one can still become the baseline.
        Code::Scaling => laws.iter().any(|report| !report.law.within(&report.allowed)),
        _ => false,
    });
    // Without the figures of other cases no law is searched, and an earlier pending law must
    // remain.
    let judges_law = needs.law.is_some() && !laws.is_empty() && record.limits.baseline.value;
    let law = judges_law.then(|| {
        let tolerance = record.limits.tolerance.value;
        let is_new = !usable.is_some_and(|then| unchanged(then, &laws, members, tolerance));
        if !is_new || too_much || !is_worth_keeping(own) {
            return PendingLaw::Removed;
        }
        if usable.is_none() {
            let finding = no_law_yet(accepted.as_ref().and_then(|laws| laws.as_ref().err()));
            // The test's own verdict may already report the missing baseline.
            findings.extend(Some(finding).filter(|new| !has_own(new.code)));
        }
        let body = &Laws::of(&laws).to_yaml();
        let new = NewSnapshot { source: others.source, line: None, facts: &record.facts, body };
        PendingLaw::Written(new.text())
    });
    Across { findings, too_much, laws, law }
}

/// `unusable` is the reason why the baseline cannot be used, if there is one.
fn no_law_yet(unusable: Option<&String>) -> Finding {
    let (code, message) = match unusable {
        None => (Code::MissingBaseline, "the law of its cases has no baseline yet".to_owned()),
        Some(why) => {
            (Code::UncomparableBaseline, format!("the baseline of the law of its cases {why}"))
        }
    };
    Finding::new(code, message)
}

/// `fits` if the device has as much, else the capacity of the device. The host has no capacity.
fn room(record: &Record, space: Space) -> Option<DeviceRoom> {
    let fits = record.limits.fits.value.filter(|_| space.is_device());
    let capacity = record.capacities.get(&space).copied();
    match (fits, capacity) {
        (Some(fits), capacity) if capacity.is_none_or(|bytes| fits.bytes() <= bytes) => {
            Some(DeviceRoom { name: fits.to_string(), bytes: fits.bytes() })
        }
        (_, Some(bytes)) => Some(DeviceRoom { name: record.device.clone(), bytes }),
        _ => None,
    }
}
