//! Which run a test needs next: one table, with a condition for each stage.

use super::plan::{Explain, RunPlan, Stage};
use super::view::View;
use crate::device::Family;
use crate::judgement::finding::{Class, Code};
use crate::measurement::record::{Outcome, Record};
use crate::measurement::repeats::MOST_RUNS;
use crate::wire::protocol::{Follow, Reach};

/// The run of this stage; `None` if a test with these runs does not need it.
pub(super) fn needed(stage: Stage, explain: Explain, view: &View<'_>) -> Option<RunPlan> {
    let record = view.record();
    let returned = record.outcome == Outcome::Returned;
    let follow = explain.follow();
    match stage {
        Stage::First => None,
        Stage::Repeat => record
            .followed
            .as_ref()
            .is_some_and(|followed| followed.disturbed || !returned)
            .then(|| RunPlan { reach: Reach::Screen, ..explain.first() }),
        Stage::Extend => (explain == Explain::Always && returned && record.can_go_on)
            .then(|| RunPlan { reach: Reach::Horizon, ..explain.first() }),
        Stage::Decide => (returned && record.is_undecided()).then(|| RunPlan {
            // Call stacks take resident memory too. With `always` no run is without them.
            follow: match record.limits.max_rss_growth.value {
                Some(_) if explain != Explain::Always => Follow::No,
                _ => follow,
            },
            reach: Reach::Decision,
        }),
        Stage::Explain => (explain == Explain::Failed && needs_call_sites(view)).then(|| {
            let is_known = record.longer.is_some() || record.followed.is_none();
            let judges_resident = record.limits.max_rss_growth.value.is_some();
            let reach = if judges_resident && !is_known { Reach::Decision } else { Reach::Screen };
            RunPlan { follow, reach }
        }),
        Stage::Compare => record
            .repeats
            .as_ref()
            .is_some_and(|repeats| repeats.asked.is_none() && repeats.runs.len() < MOST_RUNS)
            .then_some(RunPlan { follow, reach: Reach::Screen }),
        Stage::Sweep => needs_sweep(record).then_some(RunPlan { follow, reach: Reach::Faults }),
        Stage::Soak(time) => {
            let grows = || view.findings().any(|finding| finding.code == Code::Leak);
            let soaks = record.soaked.is_none() && record.refuses_soak().is_none() && !grows();
            soaks.then_some(RunPlan { follow, reach: Reach::Soak(time) })
        }
    }
}

/// For findings about memory, new figures, and memory that is allocated once in the process.
fn needs_call_sites(view: &View<'_>) -> bool {
    let is_failure = |code: Code| code.row().class == Class::Measured && code.is_about_memory();
    let record = view.record();
    record.attribution.is_none()
        && (record.holds_once()
            || view.is_pending()
            || view.findings().any(|finding| is_failure(finding.code)))
}

/// A sweep refuses device memory, and needs iterations that end.
fn needs_sweep(record: &Record) -> bool {
    record.limits.fault_sweep.value.is_on()
        && record.fault_sweep.is_none()
        && record.family == Family::Cuda
        && record.outcome == Outcome::Returned
        && record.iterated
}
