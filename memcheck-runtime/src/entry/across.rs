//! Limits that relate tests to each other, judged by the process of one test.
//!
//! Under a plain harness each test runs alone, and no `cargo memcheck` parent judges these limits.
//! The baselines of the other tests are used in place of their measurements.

use memcheck_core::across::{self, Member, PartnerError};
use memcheck_core::baseline::{Baseline, Figures};
use memcheck_core::bound::Bound;
use memcheck_core::finding::Finding;
use memcheck_core::limits::Limits;
use memcheck_core::protocol::Job;
use memcheck_core::record::Record;

use crate::description::{DESCRIPTIONS, Description};
use crate::snapshot;

/// The test that the relative limit of this test names; `None` if it has no relative limit.
pub(super) fn partner(
    description: &Description,
    limits: &Limits,
) -> Result<Option<&'static Description>, PartnerError> {
    let Some(Bound::Relative(limit)) = &limits.max_peak.value else { return Ok(None) };
    let paths: Vec<(String, &'static Description)> =
        DESCRIPTIONS.iter().map(|other| (other.path(), *other)).collect();
    let names = paths.iter().map(|(path, _)| path.as_str());
    let found = across::partner(&description.path(), limit, "this test target", names)?;
    Ok(paths.iter().find(|(path, _)| path == found).map(|(_, other)| *other))
}

/// The findings of a record compared with the baselines of other tests.
pub(super) fn findings(description: &Description, job: &Job, record: &Record) -> Vec<Finding> {
    let load =
        |other: &Description| snapshot::load(&snapshot::path(other, &job.workspace, record.family));
    let mut findings = relative(description, record, load);
    findings.extend(scaling(description, record, load));
    findings
}

fn relative(
    description: &Description,
    record: &Record,
    load: impl Fn(&Description) -> Baseline,
) -> Vec<Finding> {
    let Some(Bound::Relative(limit)) = &record.limits.max_peak.value else { return Vec::new() };
    // The parent process has already checked that the other test exists.
    let Ok(Some(other)) = partner(description, &record.limits) else { return Vec::new() };
    match across::standing_in(&load(other), &record.facts) {
        Ok(figures) => across::relative(record, limit, &other.path(), figures),
        Err(why) => {
            vec![across::unjudged(&format!("`max_peak` (`{limit}`)"), &other.path(), &why)]
        }
    }
}

/// Findings on how the figures grow over the cases. Only the largest case reports them.
fn scaling(
    description: &Description,
    record: &Record,
    load: impl Fn(&Description) -> Baseline,
) -> Vec<Finding> {
    let asked = description.scaling();
    if asked.is_empty() {
        return Vec::new();
    }
    let cases: Vec<&Description> = DESCRIPTIONS
        .iter()
        .copied()
        .filter(|other| (other.package, other.module) == (description.package, description.module))
        .collect();
    let values: Vec<_> = cases.iter().map(|case| case.case()).collect();
    let families = across::families(&values.iter().collect::<Vec<_>>(), &asked);
    let own = families.iter().find(|family| {
        family.members.last().is_some_and(|(_, last)| cases[*last].name == description.name)
    });
    let Some(family) = own else { return Vec::new() };
    let mut figures: Vec<Figures> = Vec::new();
    for (_, number) in &family.members {
        let case = cases[*number];
        if case.name == description.name {
            figures.push(Figures::of(record));
            continue;
        }
        match across::standing_in(&load(case), &record.facts) {
            Ok(found) => figures.push(found.clone()),
            Err(why) => return vec![across::unjudged("`scaling`", &case.path(), &why)],
        }
    }
    let members: Vec<Member<'_>> = family
        .members
        .iter()
        .zip(&figures)
        .map(|((at, _), figures)| Member { at: at.clone(), figures })
        .collect();
    across::scaling(&across::told(&members, &asked, |_| None), None, record)
}
