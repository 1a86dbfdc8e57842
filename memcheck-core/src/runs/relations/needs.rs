//! Finds the tests whose figures another needs: that of its limit, and the cases of its laws.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{MeasuredRuns, RelationError, families, partner};
use crate::bound::Bound;
use crate::device::Family;
use crate::judgement::finding::Finding;
use crate::judgement::location::{self, Roots};
use crate::law::Sizes;
use crate::limits::Limits;
use crate::measurement::record::Record;
use crate::wire::protocol::Entry;

/// Another test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// Its path.
    pub test: String,
    /// Its baseline.
    pub snapshot: PathBuf,
}

/// The tests whose figures one test needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// The test that the limit of its peak refers to.
    pub partner: Option<Other>,
    /// The cases of its laws, the smallest first. Only the largest case that runs has them.
    pub members: Vec<(Sizes, Other)>,
    /// The baseline of these laws.
    pub law: Option<PathBuf>,
}

impl Needs {
    /// Every path in it.
    pub fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let others = self.members.iter_mut().map(|(_, other)| other).chain(&mut self.partner);
        others.map(|other| &mut other.snapshot).chain(&mut self.law)
    }
}

type CasesOfLaws = (Vec<(Sizes, Other)>, PathBuf);

/// The tests of one executable on a device.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The name of the executable, for people.
    pub name: &'a str,
    /// Its tests.
    pub tests: &'a [Entry],
    /// The family of the device.
    pub family: Family,
    /// The folders of its sources and baselines.
    pub roots: Roots<'a>,
}

impl Target<'_> {
    /// The other tests that `test` needs. `runs` returns true for a path in this run. It is an
    /// error if its limit does not refer to exactly one other test on the same device.
    pub fn needs(
        &self,
        test: &Entry,
        limits: &Limits,
        runs: impl Fn(&str) -> bool,
    ) -> Result<Option<Needs>, RelationError> {
        let partner = self.partner(test, limits)?.map(|entry| self.other(entry));
        let (members, law) = self.laws(test, runs).unzip();
        let needs = Needs { partner, members: members.unwrap_or_default(), law };
        Ok((needs.partner.is_some() || needs.law.is_some()).then_some(needs))
    }

    fn partner(&self, test: &Entry, limits: &Limits) -> Result<Option<&Entry>, RelationError> {
        let Some(Bound::Relative(limit)) = &limits.max_peak.value else { return Ok(None) };
        let names = self.tests.iter().map(|entry| entry.name.as_str());
        let found = partner(&test.name, limit, self.name, names)?;
        let other = self.tests.iter().find(|entry| entry.name == found);
        let on_same_device = |other: &&Entry| {
            let family = other.family_on(self.family);
            other.need.admits(self.family) && family == test.family_on(self.family)
        };
        match other {
            Some(other) if !on_same_device(&other) => Err(RelationError::Elsewhere {
                test: test.name.clone(),
                limit: Box::new(limit.clone()),
                other: other.name.clone(),
                device: test.family_on(self.family).name().to_owned(),
            }),
            other => Ok(other),
        }
    }

    fn laws(&self, test: &Entry, runs: impl Fn(&str) -> bool) -> Option<CasesOfLaws> {
        if test.scaling.is_empty() {
            return None;
        }
        let cases: Vec<&Entry> =
            self.tests.iter().filter(|entry| entry.module == test.module).collect();
        let values: Vec<_> = cases.iter().map(|entry| &entry.case).collect();
        let family = families(&values, &test.scaling).into_iter().find(|family| {
            let mut members = family.members.iter().rev().map(|(_, case)| &cases[*case].name);
            members.find(|name| runs(name)) == Some(&test.name)
        })?;
        let members = family.members.into_iter();
        let members = members.map(|(at, case)| (at, self.other(cases[case]))).collect();
        Some((members, law_baseline(self.roots, test, self.family, &family.common)))
    }

    /// A test of this executable, with its baseline.
    pub fn other(&self, entry: &Entry) -> Other {
        let family = entry.family_on(self.family);
        let snapshot = location::baseline(self.roots, &entry.file, &entry.snapshot, family);
        Other { test: entry.name.clone(), snapshot }
    }
}

/// Refuses two tests of one executable that have the same baseline.
pub fn refuse_same_baseline(tests: impl IntoIterator<Item = Other>) -> Result<(), RelationError> {
    let mut known: BTreeMap<PathBuf, String> = BTreeMap::new();
    for Other { test, snapshot } in tests {
        if let Some(other) = known.get(&snapshot) {
            let other = other.clone();
            return Err(RelationError::SameBaseline { test, other, baseline: snapshot });
        }
        known.insert(snapshot, test);
    }
    Ok(())
}

fn law_baseline(
    roots: Roots<'_>,
    entry: &Entry,
    family: Family,
    common: &BTreeMap<String, String>,
) -> PathBuf {
    let family = entry.family_on(family);
    location::baseline(roots, &entry.file, &location::law(&entry.module, common), family)
}

/// The baselines of all laws of these tests on a device of this family.
pub fn law_baselines(roots: Roots<'_>, entries: &[Entry], family: Family) -> Vec<PathBuf> {
    let mut of_test: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| !entry.scaling.is_empty()) {
        if entry.need.admits(family) {
            of_test.entry(&entry.module).or_default().push(entry);
        }
    }
    let mut baselines = Vec::new();
    for cases in of_test.values() {
        let values: Vec<_> = cases.iter().map(|entry| &entry.case).collect();
        for found in families(&values, &cases[0].scaling) {
            baselines.push(law_baseline(roots, cases[0], family, &found.common));
        }
    }
    baselines
}

/// The findings about a record that need the figures of other tests.
#[derive(Debug)]
pub struct Compared {
    /// The findings about the limit of its peak, and about figures that are unknown.
    pub findings: Vec<Finding>,
    /// The runs of the cases of its laws; empty if some are unknown.
    pub members: Vec<(Sizes, MeasuredRuns)>,
}

/// `runs_of` returns the runs of a test, or the reason why they are unknown.
pub fn compare(
    record: &Record,
    needs: &Needs,
    runs_of: impl Fn(&Other) -> Result<MeasuredRuns, String>,
) -> Compared {
    let mut findings = Vec::new();
    if let (Some(partner), Some(Bound::Relative(limit))) =
        (&needs.partner, &record.limits.max_peak.value)
    {
        match runs_of(partner) {
            Ok(runs) => findings.extend(super::relative(record, limit, &partner.test, &runs)),
            Err(why) => {
                let limit = format!("`max_peak` (`{limit}`)");
                findings.push(super::unjudged(&limit, &partner.test, &why));
            }
        }
    }
    let mut members = Vec::new();
    for (at, other) in &needs.members {
        match runs_of(other) {
            Ok(runs) => members.push((at.clone(), runs)),
            Err(why) => {
                findings.push(super::unjudged("`scaling`", &other.test, &why));
                return Compared { findings, members: Vec::new() };
            }
        }
    }
    Compared { findings, members }
}
