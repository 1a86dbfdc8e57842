//! The further runs of a test whose first run measured figures only: one that repeats
//! a run that its own length disturbed, one that decides the growth, and one that
//! explains figures by call stacks. Each gives its part to the report of the first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::baseline::{Baseline, Figures};
use crate::finding::{Class, Code, Finding, Level};
use crate::protocol::{Follow, Reach, Report};
use crate::record::{Outcome, Record};
use crate::space::Space;
use crate::verdict;
use memcheck_limits::names;

/// When tests are run with attribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// Never: figures only.
    Never,
    /// A test that failed on memory, or whose figures are new, once more.
    #[default]
    Failed,
    /// Every test, at once.
    Always,
}

names!(Explain { "never" => Never, "failed" => Failed, "always" => Always });

impl Explain {
    /// What the first run of a test does.
    pub fn first(self) -> Run {
        match self {
            // The peak of a run with call stacks must be that of the measured iterations.
            Self::Always => Run { follow: Follow::Yes, ..Run::default() },
            Self::Never | Self::Failed => Run { reach: Reach::Horizon, ..Run::default() },
        }
    }
}

/// What one run of a test does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Whether it follows every block.
    pub follow: Follow,
    /// How far its iterations go.
    pub reach: Reach,
    /// The figures that it explains.
    pub expected: Option<Figures>,
}

/// A further run of a test. A caller goes through [`Stage::ALL`] in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Measures again without iterations beyond the measured ones, because those of
    /// the first run changed what the body did after them.
    Repeat,
    /// Goes on until the growth is decided.
    Decide,
    /// Follows every block, so that findings and new figures have call sites.
    Explain,
}

impl Stage {
    /// All stages, in the order in which they are run.
    pub const ALL: [Self; 3] = [Self::Repeat, Self::Decide, Self::Explain];

    /// The run of this stage; `None` if the report does not need it.
    pub fn run(self, explain: Explain, report: &Report) -> Option<Run> {
        let record = &report.record;
        let follow = if explain == Explain::Never { Follow::No } else { Follow::Yes };
        let expected = || Some(Figures::of(record));
        match self {
            Self::Repeat => record
                .followed
                .as_ref()
                .is_some_and(|followed| followed.disturbed || record.outcome != Outcome::Returned)
                .then(|| Run { reach: Reach::Screen, ..explain.first() }),
            Self::Decide => (record.outcome == Outcome::Returned && record.is_undecided())
                .then(|| Run { follow, reach: Reach::Decision, expected: expected() }),
            Self::Explain => (explain == Explain::Failed && needs_call_sites(report))
                .then(|| Run { follow, reach: Reach::Screen, expected: expected() }),
        }
    }

    /// The report of the first run with what the run of this stage adds.
    pub fn merge(
        self,
        first: Report,
        second: Option<Report>,
        baseline: &Baseline,
        level: impl Fn(Code) -> Level,
    ) -> Report {
        let judge = |record: &Record, beside: Vec<Finding>| {
            let mut findings = verdict::judge(record, baseline, &record.limits, &level).findings;
            findings.extend(beside);
            verdict::conclude(findings, &level)
        };
        // Findings that a record alone does not give: a snapshot that could not be
        // written, limits across tests.
        let beside = |report: &Report| -> Vec<Finding> {
            let judged = judge(&report.record, Vec::new()).findings;
            let findings = report.verdict.findings.iter();
            findings.filter(|finding| !judged.contains(finding)).cloned().collect()
        };
        match (self, second) {
            (Self::Repeat, second) => second.unwrap_or(first),
            (Self::Decide, second) => {
                let findings = beside(second.as_ref().unwrap_or(&first));
                let merged = decided(first, second);
                Report { verdict: judge(&merged.record, findings), ..merged }
            }
            (Self::Explain, Some(second)) if reproduces(&first, &second) => {
                let findings = beside(&second);
                let merged = explained(first, second);
                Report { verdict: judge(&merged.record, findings), ..merged }
            }
            (Self::Explain, second) => unexplained(first, second.is_some()),
        }
    }
}

/// True if a finding about memory, new figures or what is live at the end has no call sites
/// yet.
fn needs_call_sites(report: &Report) -> bool {
    let about_memory = |code: Code| code.row().class == Class::Measured && code.is_about_memory();
    let findings = &report.verdict.findings;
    let failed = findings.iter().any(|finding| about_memory(finding.code));
    let unexplained = failed || report.pending.is_some() || report.record.holds_once();
    report.record.attribution.is_none() && unexplained
}

/// The first report with the growth that a longer run proved. A leak that was proved is one
/// in a test that is not deterministic too.
fn decided(mut first: Report, second: Option<Report>) -> Report {
    // A run that did not even end its measured iterations has nothing to add.
    let measured = first.record.iterations;
    let Some(second) = second.filter(|second| second.record.iterations >= measured) else {
        let why = "a longer run left no whole report, so it is not decided whether memory grows";
        first.record.notes.push(why.to_owned());
        return first;
    };
    if !repeats(&first.record, &second.record) {
        let why = "the run that decided the growth measured other figures: this test is not \
                   deterministic";
        first.record.notes.push(why.to_owned());
    }
    (first.snapshot, first.pending) = (second.snapshot, second.pending);
    first.record.take_growth(second.record);
    first
}

/// True if two runs of a test measured the same, apart from what the second can only
/// measure if it ends with the measured iterations.
fn repeats(first: &Record, second: &Record) -> bool {
    let figures = |record: &Record| {
        let mut figures = Figures::of(record);
        for by_name in figures.0.values_mut() {
            for name in ["growth", "peak_allocated", "retained"] {
                by_name.remove(name);
            }
        }
        figures
    };
    let allocated = |record: &Record| -> BTreeMap<Space, Vec<u64>> {
        let of = |space: &Space| Some((*space, record.spaces.get(space)?.allocated.clone()));
        record.judged.iter().filter_map(of).collect()
    };
    figures(first) == figures(second) && allocated(first) == allocated(second)
}

/// True if the second run measured what is to be explained: every figure, but for what
/// threads that outlive the body still held, unless somebody asks for it. The growth is
/// that of the first.
fn reproduces(first: &Report, second: &Report) -> bool {
    let asked = first.verdict.has(Code::Retained) || first.pending.is_some();
    let figures = |report: &Report| {
        let mut figures = Figures::of(&report.record);
        for by_name in figures.0.values_mut() {
            by_name.remove("growth");
            if !asked {
                by_name.remove("retained");
            }
        }
        figures
    };
    figures(first) == figures(second)
}

/// The second report, which has call sites, with the growth that was decided before.
fn explained(first: Report, mut second: Report) -> Report {
    if first.record.longer.is_some() || growth(&first.record) != growth(&second.record) {
        second.record.take_growth(first.record);
    } else {
        second.record.followed = first.record.followed;
    }
    second
}

fn growth(record: &Record) -> Vec<u64> {
    record.spaces.values().map(|measured| measured.metrics.growth).collect()
}

/// The first report, which says why its bytes have no call sites.
fn unexplained(first: Report, has_second: bool) -> Report {
    let why = if has_second {
        "a second run, with call stacks, measured other figures: this test is not \
         deterministic, and its bytes cannot be put to places"
    } else {
        "a second run, with call stacks, left no report"
    };
    let mut first = first;
    for finding in &mut first.verdict.findings {
        if finding.code.is_about_memory() {
            finding.hint = Some(why.to_owned());
        }
    }
    first.record.notes.push(why.to_owned());
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::Attribution;
    use crate::limits::Layer;
    use crate::protocol::VERSION;
    use crate::record::{Followed, Metrics, SpaceRecord};
    use crate::survivors::Growth;
    use crate::verdict::judge;
    use crate::verdict::tests::{GPU, armed, limits, record};

    fn level(code: Code) -> Level {
        code.default_level(false)
    }

    fn report(measured: SpaceRecord) -> Report {
        let record = record(measured);
        let verdict = judge(&record, &Baseline::Off, &limits(Layer::default()), level);
        Report {
            version: VERSION,
            record,
            unresolved: None,
            verdict,
            snapshot: None,
            pending: None,
        }
    }

    fn leaky() -> SpaceRecord {
        armed(Metrics { growth: 2 << 20, retained: 7, ..Metrics::default() })
    }

    fn undecided() -> SpaceRecord {
        SpaceRecord { growth: Growth::Unknown, ..armed(Metrics::default()) }
    }

    fn merge(stage: Stage, first: &Report, second: Option<Report>) -> Report {
        stage.merge(first.clone(), second, &Baseline::Off, level)
    }

    #[test]
    fn only_what_needs_call_sites_is_run_again() {
        let explain = |explain, report: &Report| Stage::Explain.run(explain, report);
        let clean = report(armed(Metrics::default()));
        assert_eq!(explain(Explain::Failed, &clean), None);
        assert_eq!(explain(Explain::Never, &report(leaky())), None);
        assert_eq!(explain(Explain::Always, &report(leaky())), None, "it was followed at once");
        let run = explain(Explain::Failed, &report(leaky())).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Screen));
        assert!(run.expected.is_some());
        let new = Report { pending: Some("a.snap.new".into()), ..clean };
        assert!(explain(Explain::Failed, &new).is_some());
    }

    #[test]
    fn what_the_measured_iterations_leave_undecided_is_run_until_it_is_decided() {
        let first = report(undecided());
        let run = Stage::Decide.run(Explain::Failed, &first).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Decision));
        let run = Stage::Decide.run(Explain::Never, &first).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::No, Reach::Decision));
        assert_eq!(Stage::Decide.run(Explain::Failed, &report(leaky())), None);

        let found = Growth::Found { whole: true, exact: true, iterations: 165 };
        let mut longer = report(SpaceRecord { growth: found, ..leaky() });
        // Of more iterations: the peak and what is retained are others.
        longer.record.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated = 1 << 30;
        longer.record.attribution = Some(Attribution::default());
        let merged = merge(Stage::Decide, &first, Some(longer.clone()));
        let metrics = merged.record.spaces[&GPU].metrics;
        assert_eq!((metrics.growth, metrics.peak_allocated, metrics.retained), (2 << 20, 0, 0));
        assert!(merged.verdict.has(Code::Leak), "{:?}", merged.verdict);
        assert!(merged.record.longer.is_some() && merged.record.attribution.is_none());
        assert_eq!(Stage::Decide.run(Explain::Failed, &merged), None);

        longer.record.spaces.get_mut(&GPU).unwrap().metrics.setup = 1;
        for (second, code) in [(None, Code::Undecided), (Some(longer), Code::Leak)] {
            let merged = merge(Stage::Decide, &first, second);
            assert_eq!(merged.record.notes.len(), 1, "{:?}", merged.record.notes);
            assert!(merged.verdict.has(code), "{:?}", merged.verdict);
        }
    }

    #[test]
    fn a_run_that_its_own_length_disturbed_is_repeated_without_it() {
        let followed = |disturbed| Followed {
            iterations: 65,
            seconds: 0.1,
            decided: true,
            disturbed,
            ended: None,
        };
        let mut first = report(armed(Metrics::default()));
        assert_eq!(Stage::Repeat.run(Explain::Failed, &first), None);
        first.record.followed = Some(followed(false));
        assert_eq!(Stage::Repeat.run(Explain::Failed, &first), None);
        first.record.followed = Some(followed(true));
        let run = Stage::Repeat.run(Explain::Failed, &first).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::No, Reach::Screen));
        first.record.followed = Some(followed(false));
        first.record.outcome = Outcome::Panicked { message: "12 calls were expected".to_owned() };
        assert!(Stage::Repeat.run(Explain::Failed, &first).is_some());
        let second = report(undecided());
        assert_eq!(merge(Stage::Repeat, &first, Some(second.clone())), second);
    }

    #[test]
    fn a_second_run_that_measured_otherwise_explains_nothing_and_says_so() {
        let first = report(leaky());
        let mut same = report(leaky());
        same.record.notes.push("second".to_owned());
        assert_eq!(merge(Stage::Explain, &first, Some(same.clone())), same);
        let mut other = same;
        other.record.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated += 1;
        for second in [Some(other), None] {
            let merged = merge(Stage::Explain, &first, second);
            assert_eq!(merged.record.notes.len(), 1, "{:?}", merged.record.notes);
            let hint = merged.verdict.findings[0].hint.as_deref().unwrap();
            assert!(hint.starts_with("a second run"), "{hint}");
        }
    }

    #[test]
    fn the_run_that_explains_keeps_the_growth_that_a_longer_run_decided() {
        let mut first = report(leaky());
        first.record.longer = Some(Attribution::default());
        let second = report(undecided());
        let second = Report { pending: None, ..second };
        let mut second = second;
        second.record.spaces.get_mut(&GPU).unwrap().metrics.retained = 7;
        second.record.attribution = Some(Attribution::default());
        let merged = merge(Stage::Explain, &first, Some(second));
        assert_eq!(merged.record.spaces[&GPU].metrics.growth, 2 << 20);
        assert!(merged.record.attribution.is_some() && merged.record.longer.is_some());
    }
}
