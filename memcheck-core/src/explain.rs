//! Measure first, explain on failure: when a test is run once more with
//! attribution, and what becomes of the two reports.

use serde::{Deserialize, Serialize};

use crate::baseline::Figures;
use crate::finding::{Class, Code};
use crate::protocol::{Follow, Report};
use crate::survivors::{self, Group};
use memcheck_limits::names;

/// When tests are run with attribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// Never: figures only.
    Never,
    /// A test that failed on memory, whose figures are new, or whose live bytes
    /// rise in a way that totals alone cannot judge, once more.
    #[default]
    Failed,
    /// Every test, at once.
    Always,
}

names!(Explain { "never" => Never, "failed" => Failed, "always" => Always });

impl Explain {
    /// Whether the first run of a test follows every block.
    pub fn follow(self) -> Follow {
        match self {
            Self::Never | Self::Failed => Follow::No,
            Self::Always => Follow::Yes,
        }
    }

    /// How a test is run once more after this report; `None` where it is not.
    pub fn again(self, report: &Report) -> Option<Follow> {
        let about_memory =
            |code: Code| code.row().class == Class::Measured && code.is_about_memory();
        let failed = report.verdict.findings.iter().any(|finding| about_memory(finding.code));
        let suspicious = report.record.judged.iter().any(|space| {
            report.record.spaces.get(space).is_some_and(|measured| {
                let hidden: u64 = measured.survivors.iter().map(Group::suspicious).sum();
                let rate = survivors::suspicious(&measured.allocated).max(hidden);
                rate > report.record.limits.max_growth.value
            })
        });
        let wanted = self == Self::Failed
            && report.record.attribution.is_none()
            && (failed || suspicious || report.pending.is_some());
        wanted.then(|| Follow::Again(Figures::of(&report.record)))
    }
}

/// Whether the second run measured what is to be explained: every figure, but
/// for what threads that outlive the body still held, where nobody asks for it.
fn reproduces(first: &Report, second: &Report) -> bool {
    let asked = first.verdict.has(Code::Retained) || first.pending.is_some();
    let figures = |report: &Report| {
        let mut figures = Figures::of(&report.record);
        if !asked {
            for by_name in figures.0.values_mut() {
                by_name.remove("retained");
            }
        }
        figures
    };
    figures(first) == figures(second)
}

/// The report of a test that was run twice: the one with attribution where it
/// measured the same, else the first, and it says so.
pub fn merge(first: Report, second: Option<Report>) -> Report {
    match second {
        Some(second) if reproduces(&first, &second) => second,
        second => {
            let why = match second {
                Some(_) => {
                    "a second run, with call stacks, measured other figures: this test is not \
                     deterministic, and its bytes cannot be put to places"
                }
                None => "a second run, with call stacks, left no report",
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::VERSION;
    use crate::record::{Metrics, SpaceRecord};
    use crate::verdict::tests::{armed, limits, record};
    use crate::verdict::{judge, tests::GPU};

    fn report(measured: SpaceRecord) -> Report {
        let record = record(measured);
        let limits = limits(crate::limits::Layer::default());
        let verdict = judge(&record, &crate::baseline::Baseline::Off, &limits, |code| {
            code.default_level(false)
        });
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

    #[test]
    fn only_what_needs_call_sites_is_run_again() {
        let clean = report(armed(Metrics::default()));
        assert_eq!(Explain::Failed.again(&clean), None);
        assert_eq!(Explain::Never.again(&report(leaky())), None);
        assert_eq!(Explain::Always.again(&report(leaky())), None, "it was followed at once");
        assert!(matches!(Explain::Failed.again(&report(leaky())), Some(Follow::Again(_))));
        let new = Report { pending: Some("a.snap.new".into()), ..clean };
        assert!(Explain::Failed.again(&new).is_some());
    }

    #[test]
    fn live_bytes_that_rise_irregularly_are_looked_at() {
        let kib = |levels: &[u64]| SpaceRecord {
            allocated: levels.iter().map(|level| level << 20).collect(),
            ..armed(Metrics::default())
        };
        let rising = kib(&[22, 30, 30, 44, 53, 53, 66, 76, 76, 88, 88, 95]);
        assert!(Explain::Failed.again(&report(rising)).is_some());
        let settled = kib(&[22, 30, 30, 44, 44, 44, 44, 44, 44, 44, 44, 44]);
        assert_eq!(Explain::Failed.again(&report(settled)), None);
    }

    #[test]
    fn a_second_run_that_measured_otherwise_explains_nothing_and_says_so() {
        let first = report(leaky());
        let mut same = report(leaky());
        same.record.notes.push("second".to_owned());
        assert_eq!(merge(first.clone(), Some(same.clone())), same);
        let mut other = same;
        other.record.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated += 1;
        for second in [Some(other), None] {
            let merged = merge(first.clone(), second);
            assert_eq!(merged.record.notes.len(), 1, "{:?}", merged.record.notes);
            let hint = merged.verdict.findings[0].hint.as_deref().unwrap();
            assert!(hint.starts_with("a second run"), "{hint}");
        }
    }
}
