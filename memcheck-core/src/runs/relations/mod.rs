//! Verdicts across tests: a relative limit, and the growth of a figure over cases.
//!
//! ```text
//! test, names         -> partner          which test a relative limit means
//! record, its figures -> relative         whether the limit holds
//! cases               -> family           which cases have one law, over which sizes
//! family's figures    -> scaling          the laws, and whether they are allowed
//! all of these        -> across           findings, and the baseline of the laws (accepted)
//! ```
//!
//! All functions are pure. If a test was not run, its baseline can replace its figures, but only if
//! the baseline was made under the same conditions.

mod accepted;
mod across;
mod family;
mod needs;
mod partner;
mod relative;
mod scaling;
#[cfg(test)]
mod tests;

use crate::judgement::baseline::{Baseline, Figures, other_conditions};
use crate::judgement::finding::{Code, Finding};
use crate::measurement::comparison;
use crate::measurement::record::{Facts, Record};

pub use accepted::accepted_laws;
pub use across::{Across, OtherTests, PendingLaw, across, has_figures};
pub use family::{CaseFamily, families};
pub use needs::{Compared, Needs, Other, Target, compare, law_baselines, refuse_same_baseline};
pub use partner::{RelationError, circle, partner};
pub use relative::relative;
pub use scaling::{DeviceRoom, Member, members_of_runs, scaling, scaling_reports, unchanged};

/// The figures of each run of a test. A test has several runs if its figures differ.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRuns {
    /// Those of the first run, or of a baseline.
    pub first: Figures,
    /// Those of the further runs.
    pub further: Vec<Figures>,
}

impl MeasuredRuns {
    /// The figures of a run, the first being 0; those of the last one if there are fewer runs.
    fn run(&self, number: usize) -> &Figures {
        match number.min(self.further.len()) {
            0 => &self.first,
            further => &self.further[further - 1],
        }
    }

    /// All runs that were merged into a record.
    pub fn of(record: &Record) -> Self {
        let further = comparison::runs(record).split_off(1);
        Self { first: Figures::of(record), further }
    }
}

impl From<Figures> for MeasuredRuns {
    fn from(first: Figures) -> Self {
        Self { first, further: Vec::new() }
    }
}

/// The figures of the baseline of a test that was not run, or why they cannot be compared.
pub fn standing_in<'a>(baseline: &'a Baseline, now: &Facts) -> Result<&'a Figures, String> {
    match baseline {
        Baseline::Off | Baseline::Missing => Err("did not run here and has no baseline".to_owned()),
        Baseline::Corrupt(why) => {
            Err(format!("did not run here and has a baseline that cannot be used ({why})"))
        }
        Baseline::Found { figures, facts, .. } => {
            // Another test may have other iterations and another dtype.
            let of_same_test = Facts {
                iterations: now.iterations,
                warmup: now.warmup,
                dtype: now.dtype.clone(),
                ..facts.clone()
            };
            match other_conditions(&of_same_test, now) {
                None => Ok(figures),
                Some(conditions) => {
                    Err(format!("did not run here and has a baseline that was {conditions}"))
                }
            }
        }
    }
}

/// The finding that `what` cannot be judged, because the figures of `other` are missing.
pub fn unjudged(what: &str, other: &str, why: &str) -> Finding {
    Finding::new(Code::UncomparableBaseline, format!("{what} is not judged: `{other}` {why}"))
        .hint(format!("run `{other}` too, or run it once and accept its figures"))
}
