//! Determines which tests need the figures of which other tests. This happens before anything runs, so that a limit
//! that names no test is reported as a mistake in the configuration and not at the end of the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::across::{PartnerError, circle, families, partner};
use memcheck_core::bound::{Bound, Relative};
use memcheck_core::protocol::Entry;
use memcheck_core::{exit, location};

use crate::error::Expected;
use crate::session::LegTests;
use crate::task::{Needs, Other, Task};

/// Why a limit across tests cannot be judged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcrossError {
    /// The limit does not name exactly one other test, or the limits of several tests form a circle.
    #[error(transparent)]
    Partner(#[from] PartnerError),
    /// The limit names a test that does not run on the same device.
    #[error("`max_peak` of `{test}` is `{limit}`, and `{other}` does not run on {device}")]
    Elsewhere {
        /// The test that has the limit.
        test: String,
        limit: Box<Relative>,
        /// The test that the limit names.
        other: String,
        /// The device of the test that has the limit.
        device: String,
    },
}

impl Expected for AcrossError {
    fn exit_code(&self) -> u8 {
        exit::CONFIG
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Partner(PartnerError::Unknown { .. } | PartnerError::Ambiguous { .. }) => {
                "`cargo memcheck list` shows the paths of all tests"
            }
            Self::Partner(PartnerError::Circle(_)) => "let one of them have a limit in bytes",
            Self::Partner(PartnerError::Itself { .. }) => return None,
            Self::Elsewhere { .. } => {
                "both have to run on the same device: `device = …` in the attribute, or an \
                 [[override]] with `device`"
            }
        };
        Some(hint.to_owned())
    }
}

/// Returns the needs of each of these tasks of a leg. `None` for a task that needs no other figures.
pub(crate) fn needs(
    tests: &LegTests,
    tasks: &[Task],
    root: &Path,
) -> Result<Vec<Option<Needs>>, AcrossError> {
    let mut partners: Vec<Option<&Entry>> = Vec::new();
    for task in tasks {
        partners.push(partner_of(tests, task)?);
    }
    without_circles(tasks, &partners)?;
    let other = |task: &Task, entry: &Entry| Other {
        test: entry.name.clone(),
        snapshot: baseline(root, entry, task),
    };
    let mut needs: Vec<Option<Needs>> = tasks
        .iter()
        .zip(&partners)
        .map(|(task, partner)| {
            let partner = Some(other(task, (*partner)?));
            Some(Needs { partner, members: Vec::new(), law: None })
        })
        .collect();
    for (number, task) in tasks.iter().enumerate().filter(|(_, t)| !t.entry.scaling.is_empty()) {
        let entries = entries(tests, task);
        let cases: Vec<&Entry> =
            entries.into_iter().filter(|entry| entry.module == task.entry.module).collect();
        let values: Vec<_> = cases.iter().map(|entry| &entry.case).collect();
        for family in families(&values, &task.entry.scaling) {
            let runs = |entry: &Entry| {
                let same = |task: &&Task| task.entry.name == entry.name;
                tasks.iter().filter(|other| other.binary.id == task.binary.id).any(|t| same(&t))
            };
            let largest = family.members.iter().rev().find(|(_, case)| runs(cases[*case]));
            if largest.is_some_and(|(_, case)| cases[*case].name == task.entry.name) {
                let members = family.members.iter();
                let members =
                    members.map(|(at, case)| (at.clone(), other(task, cases[*case]))).collect();
                let law = law_baseline(root, &task.entry, task.leg.family(), &family.common);
                let partner = needs[number].take().and_then(|needs| needs.partner);
                needs[number] = Some(Needs { partner, members, law: Some(law) });
            }
        }
    }
    Ok(needs)
}

/// Returns the tests in the executable of a task.
fn entries<'a>(tests: &'a LegTests, task: &Task) -> Vec<&'a Entry> {
    let own = tests.carried.iter().filter(|carried| carried.binary.id == task.binary.id);
    own.flat_map(|carried| &carried.tests).collect()
}

fn partner_of<'a>(tests: &'a LegTests, task: &Task) -> Result<Option<&'a Entry>, AcrossError> {
    let Some(Bound::Relative(limit)) = &task.limits.max_peak.value else { return Ok(None) };
    let entries = entries(tests, task);
    let names = entries.iter().map(|entry| entry.name.as_str());
    let found = partner(&task.entry.name, limit, &task.binary.id, names)?;
    let entry = entries.into_iter().find(|entry| entry.name == found);
    let family = task.leg.family();
    match entry {
        Some(entry)
            if !entry.need.admits(family)
                || entry.family_on(family) != task.entry.family_on(family) =>
        {
            Err(AcrossError::Elsewhere {
                test: task.entry.name.clone(),
                limit: Box::new(limit.clone()),
                other: entry.name.clone(),
                device: task.entry.family_on(family).name().to_owned(),
            })
        }
        entry => Ok(entry),
    }
}

/// Refuses limits that form a circle. Each executable is checked separately, because paths are unique only within one.
fn without_circles(tasks: &[Task], partners: &[Option<&Entry>]) -> Result<(), AcrossError> {
    let mut limits: BTreeMap<&str, BTreeMap<&str, _>> = BTreeMap::new();
    for (task, partner) in tasks.iter().zip(partners) {
        if let (Some(Bound::Relative(limit)), Some(partner)) =
            (&task.limits.max_peak.value, partner)
        {
            let of_binary = limits.entry(task.binary.id.as_str()).or_default();
            of_binary.insert(task.entry.name.as_str(), (partner.name.as_str(), limit.factor()));
        }
    }
    match limits.values().find_map(circle) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn baseline(root: &Path, entry: &Entry, task: &Task) -> PathBuf {
    let family = entry.family_on(task.leg.family());
    location::baseline(root, &entry.file, &entry.snapshot, family)
}

fn law_baseline(
    root: &Path,
    entry: &Entry,
    family: memcheck_core::device::Family,
    common: &BTreeMap<String, String>,
) -> PathBuf {
    let family = entry.family_on(family);
    location::baseline(root, &entry.file, &location::law(&entry.module, common), family)
}

/// Returns the baselines of all laws of these tests on a device of this family.
pub(crate) fn law_baselines(
    root: &Path,
    entries: &[Entry],
    family: memcheck_core::device::Family,
) -> Vec<PathBuf> {
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
            baselines.push(law_baseline(root, cases[0], family, &found.common));
        }
    }
    baselines
}
