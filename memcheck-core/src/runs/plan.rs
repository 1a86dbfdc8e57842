//! Which runs a test needs after its first: one table, with a condition for each.

use std::time::Duration;

use memcheck_limits::names;
use serde::{Deserialize, Serialize};

use super::measured::View;
use crate::device::Family;
use crate::judgement::finding::{Class, Code};
use crate::measurement::record::{Outcome, Record};
use crate::measurement::repeats::MOST_RUNS;
use crate::wire::protocol::{Follow, Reach};

/// The tests that are run with attribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// No test: figures only.
    Never,
    /// A test that failed on memory or has new figures is run once more with attribution.
    #[default]
    Failed,
    /// Every test has attribution in its first run.
    Always,
}

names!(Explain { "never" => Never, "failed" => Failed, "always" => Always });

impl Explain {
    /// The first run of a test.
    pub fn first(self) -> RunPlan {
        match self {
            // The peak must be that of the measured iterations, so it does not go beyond them.
            // [`Stage::Extend`] does.
            Self::Always => RunPlan { follow: Follow::Yes, reach: Reach::Screen },
            Self::Never | Self::Failed => RunPlan { follow: Follow::No, reach: Reach::Horizon },
        }
    }

    fn follow(self) -> Follow {
        if self == Self::Never { Follow::No } else { Follow::Yes }
    }
}

/// The settings of one run of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPlan {
    /// The detail in which the run follows blocks.
    pub follow: Follow,
    /// The number of iterations beyond the measured ones.
    pub reach: Reach,
}

impl From<Follow> for RunPlan {
    fn from(follow: Follow) -> Self {
        Self { follow, ..Self::default() }
    }
}

/// What a run of a test is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Measures the figures.
    First,
    /// Measures without further iterations, because those of the first run disturbed it.
    Repeat,
    /// Looks for late and rare leaks, because the first run had call stacks and did not.
    Extend,
    /// Iterates until the growth is decided.
    Decide,
    /// Follows every block, so that findings and new figures have call sites. If resident memory
    /// is judged, the run that decided the growth had none, and this one has as many iterations.
    Explain,
    /// Measures once more, because two runs measured different figures.
    Compare,
    /// Refuses the device allocations of one iteration in turn.
    Sweep,
    /// Iterates for this time, for leaks that begin late or are rare.
    Soak(Duration),
}

impl Stage {
    /// The stages after the first, in order. Two runs differ before the three comparisons, which
    /// makes [`MOST_RUNS`].
    pub const ALL: [Self; 8] = [
        Self::Repeat,
        Self::Extend,
        Self::Decide,
        Self::Explain,
        Self::Compare,
        Self::Compare,
        Self::Compare,
        Self::Sweep,
    ];

    /// The stages that measure the figures of a test, without call sites.
    pub const FIGURES: [Self; 2] = [Self::Repeat, Self::Decide];

    /// The run of this stage; `None` if a test with these runs does not need it.
    pub(super) fn run(self, explain: Explain, view: &View<'_>) -> Option<RunPlan> {
        let record = view.record();
        let returned = record.outcome == Outcome::Returned;
        let follow = explain.follow();
        match self {
            Self::First => None,
            Self::Repeat => record
                .followed
                .as_ref()
                .is_some_and(|followed| followed.disturbed || !returned)
                .then(|| RunPlan { reach: Reach::Screen, ..explain.first() }),
            Self::Extend => (explain == Explain::Always && returned && record.can_go_on)
                .then(|| RunPlan { reach: Reach::Horizon, ..explain.first() }),
            Self::Decide => (returned && record.is_undecided()).then(|| RunPlan {
                // Call stacks take resident memory too. With `always` no run is without them.
                follow: match record.limits.max_rss_growth.value {
                    Some(_) if explain != Explain::Always => Follow::No,
                    _ => follow,
                },
                reach: Reach::Decision,
            }),
            Self::Explain => (explain == Explain::Failed && needs_call_sites(view)).then(|| {
                let is_known = record.longer.is_some() || record.followed.is_none();
                let judges_resident = record.limits.max_rss_growth.value.is_some();
                let reach =
                    if judges_resident && !is_known { Reach::Decision } else { Reach::Screen };
                RunPlan { follow, reach }
            }),
            Self::Compare => record
                .repeats
                .as_ref()
                .is_some_and(|repeats| repeats.asked.is_none() && repeats.runs.len() < MOST_RUNS)
                .then_some(RunPlan { follow, reach: Reach::Screen }),
            Self::Sweep => needs_sweep(record).then_some(RunPlan { follow, reach: Reach::Faults }),
            Self::Soak(time) => {
                let grows = || view.findings().any(|finding| finding.code == Code::Leak);
                let soaks = record.soaked.is_none() && record.refuses_soak().is_none() && !grows();
                soaks.then_some(RunPlan { follow, reach: Reach::Soak(time) })
            }
        }
    }

    /// The words for a run whose lost process fails the test; `None` if the run only explains
    /// another.
    pub(super) fn place(self) -> Option<&'static str> {
        match self {
            Self::Soak(_) => Some("in the soak"),
            Self::Decide => Some("in further iterations, which decide whether memory grows"),
            _ => None,
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
