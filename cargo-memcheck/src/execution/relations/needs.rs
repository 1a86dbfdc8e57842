//! Determines which tests need the figures of which other tests. This happens before anything runs,
//! so that a limit that names no test is reported as a mistake in the configuration and not at the
//! end of the run.

use std::collections::BTreeMap;

use memcheck_core::bound::Bound;
use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::runs::relations::{
    Needs, Other, RelationError, Target, circle, refuse_same_baseline,
};
use memcheck_core::wire::exit;

use crate::discovery::session::LegTests;
use crate::discovery::task::Task;
use crate::system::error::CommandError;

impl CommandError for RelationError {
    fn exit_code(&self) -> u8 {
        exit::CONFIG
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unknown { .. } | Self::Ambiguous { .. } => {
                "`cargo memcheck list` shows the paths of all tests"
            }
            Self::Circle(_) => "give one of them a limit in bytes",
            Self::SameBaseline { .. } => {
                "rename one of them: `::` and `__` are equal in the name of a file"
            }
            Self::Itself { .. } => return None,
            Self::Elsewhere { .. } => {
                "both must run on the same device: `device = …` in the attribute, or an \
                 [[override]] with `device`"
            }
        };
        Some(hint.to_owned())
    }
}

/// `None` for a task that needs no other figures.
pub(crate) fn needs(
    tests: &LegTests,
    tasks: &[Task],
    roots: Roots<'_>,
) -> Result<Vec<Option<Needs>>, RelationError> {
    let needs = tasks.iter().map(|task| {
        let mut carried = tests.carried.iter();
        let own = carried.find(|carried| carried.binary.id == task.binary.id);
        let target = Target {
            name: &task.binary.id,
            tests: own.map_or(&[], |carried| &carried.tests),
            family: task.leg.family(),
            roots,
        };
        let runs = |test: &str| {
            let of_binary = tasks.iter().filter(|other| other.binary.id == task.binary.id);
            of_binary.into_iter().any(|other| other.name() == test)
        };
        task.subject.test().map_or(Ok(None), |entry| target.needs(entry, &task.limits, runs))
    });
    let needs = needs.collect::<Result<Vec<_>, _>>()?;
    refuse_circles(tasks, &needs)?;
    refuse_shared_baselines(tasks, roots)?;
    Ok(needs)
}

/// By executable: a module of `lib.rs` and of `main.rs` has the same tests, with equal figures.
fn refuse_shared_baselines(tasks: &[Task], roots: Roots<'_>) -> Result<(), RelationError> {
    let mut kept: BTreeMap<&str, Vec<Other>> = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.limits.baseline.value) {
        let Some(entry) = task.subject.test() else { continue };
        let snapshot = location::baseline(roots, &entry.file, &entry.snapshot, task.family());
        let test = Other { test: entry.name.clone(), snapshot };
        kept.entry(task.binary.id.as_str()).or_default().push(test);
    }
    kept.into_values().try_for_each(refuse_same_baseline)
}

/// By executable, because paths are unique only within one.
fn refuse_circles(tasks: &[Task], needs: &[Option<Needs>]) -> Result<(), RelationError> {
    let mut limits: BTreeMap<&str, BTreeMap<&str, _>> = BTreeMap::new();
    for (task, needs) in tasks.iter().zip(needs) {
        let partner = needs.as_ref().and_then(|needs| needs.partner.as_ref());
        if let (Some(Bound::Relative(limit)), Some(partner)) =
            (&task.limits.max_peak.value, partner)
        {
            let of_binary = limits.entry(task.binary.id.as_str()).or_default();
            of_binary.insert(task.name(), (partner.test.as_str(), limit.factor()));
        }
    }
    limits.values().find_map(circle).map_or(Ok(()), Err)
}
