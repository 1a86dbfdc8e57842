//! Measure first, explain on failure: when a test is run once more with
//! attribution, and what becomes of the two reports.

use serde::{Deserialize, Serialize};

use crate::baseline::Figures;
use crate::finding::{Class, Code};
use crate::protocol::Report;
use crate::survivors::{self, Group};

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

impl Explain {
    /// The names, as flags and variables spell them.
    pub const NAMES: [&'static str; 3] = ["never", "failed", "always"];

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

impl std::str::FromStr for Explain {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Self::Never),
            "failed" => Ok(Self::Failed),
            "always" => Ok(Self::Always),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// Whether a test process follows every block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Follow {
    /// Counters only.
    #[default]
    No,
    /// Every block with its stack and scope.
    Yes,
    /// The same, to explain these figures: where others are measured, nothing
    /// is kept of the run.
    Again(Figures),
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
