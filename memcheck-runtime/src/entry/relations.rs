//! Limits that relate tests to each other, judged by the process of one test.
//!
//! Under a plain harness each test runs alone, and no `cargo memcheck` parent judges these limits.
//! The baselines of the other tests are used in place of their measurements.

use memcheck_core::device::Family;
use memcheck_core::judgement::finding::Finding;
use memcheck_core::judgement::location::Roots;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::record::Record;
use memcheck_core::runs::relations::{
    self, Compared, MeasuredRuns, Needs, Other, RelationError, Target, refuse_same_baseline,
};
use memcheck_core::wire::protocol::{Entry, Job};

use super::listing;
use crate::description::Description;
use crate::snapshot;

/// The needs of a test: the other tests of its executable whose figures it needs.
pub(super) fn needs(
    description: &Description,
    limits: &Limits,
    family: Family,
    roots: Roots<'_>,
) -> Result<Option<Needs>, RelationError> {
    let target =
        Target { name: "this test target", tests: &listing::listing().tests, family, roots };
    let test = listing::entry(description);
    if limits.baseline.value {
        let shares = |entry: &&Entry| {
            let keeps = entry.need.admits(family) && entry.attribute.baseline != Some(false);
            keeps && entry.snapshot == test.snapshot
        };
        refuse_same_baseline(target.tests.iter().filter(shares).map(|entry| target.other(entry)))?;
    }
    target.needs(&test, limits, |_| true)
}

/// The findings of a record compared with the baselines of other tests.
pub(super) fn findings(description: &Description, job: &Job, record: &Record) -> Vec<Finding> {
    // The parent process has already refused a limit that does not refer to a test.
    let needs = needs(description, &record.limits, record.family, job.roots());
    let Ok(Some(needs)) = needs else { return Vec::new() };
    let runs_of = |other: &Other| {
        if other.test == record.test {
            return Ok(MeasuredRuns::of(record));
        }
        let baseline = snapshot::load(&other.snapshot);
        relations::standing_in(&baseline, &record.facts).cloned().map(MeasuredRuns::from)
    };
    let Compared { mut findings, members } = relations::compare(record, &needs, runs_of);
    let asked = description.scaling();
    let runs = relations::members_of_runs(&members);
    let laws: Vec<_> =
        runs.iter().map(|run| relations::scaling_reports(run, &asked, |_| None)).collect();
    findings.extend(relations::scaling(&laws, None, record));
    findings
}
