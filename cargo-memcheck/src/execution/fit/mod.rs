//! `fit` searches for the largest value of a case that fits on a device. The modules choose the
//! test, run one attempt, and predict the next value. [`memcheck_core::search`] decides which value
//! to try next.

mod attempt;
mod choose;
mod error;
mod expect;

use std::ops::RangeInclusive;

use memcheck_core::search::{Search, Start};
use memcheck_core::tolerance::Tolerance;

use crate::build::leg::{DeviceKind, Leg};
use crate::discovery::task::Task;
use crate::execution::run::Runner;
use crate::system::error::Failure;
use expect::{ExpectedValue, expected};

pub(crate) use attempt::{Attempt, Capacities};
pub(crate) use choose::{CaseSelection, choose, path};
pub(crate) use error::FitError;
pub(crate) use expect::Prediction;

#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    pub(crate) leg: Leg,
    pub(crate) rooms: Capacities,
    /// In the order in which they were made.
    pub(crate) attempts: Vec<Attempt>,
    predicted: Option<Prediction>,
}

impl Fitted {
    pub(crate) fn largest(&self) -> Option<&Attempt> {
        let fitting = self.attempts.iter().filter(|attempt| attempt.has_room());
        fitting.max_by_key(|attempt| attempt.value)
    }

    pub(crate) fn failed(&self) -> Option<&Attempt> {
        let failing = self.attempts.iter().filter(|attempt| !attempt.has_room());
        failing.min_by_key(|attempt| attempt.value)
    }

    /// Only if the search had the law before it tried the largest value.
    pub(crate) fn predicted(&self) -> Option<&Prediction> {
        let largest = self.largest()?.value;
        let tried_before = self.attempts.iter().take_while(|tried| tried.value != largest).count();
        self.predicted.as_ref().filter(|predicted| predicted.attempts <= tried_before)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SearchGoal<'a> {
    pub(crate) param: &'a str,
    pub(crate) range: RangeInclusive<u64>,
    /// Must stay free on each device.
    pub(crate) margin: Tolerance,
    /// Bytes, for each device.
    pub(crate) fits: Option<u64>,
}

impl SearchGoal<'_> {
    pub(crate) fn check(&self) -> Result<(), FitError> {
        Search::new(self.range.clone(), Start::Lowest).map(drop).map_err(FitError::Range)
    }

    /// `None` if the run was interrupted.
    pub(crate) fn search(
        &self,
        runner: &Runner<'_>,
        task: &Task,
        mut on_attempt: impl FnMut(&Attempt),
    ) -> Result<Option<Fitted>, Failure> {
        let mut search = Search::new(self.range.clone(), Start::Lowest).map_err(FitError::Range)?;
        let rooms = Capacities::of(&task.leg, self.margin, self.fits)?;
        let mut attempts = Vec::new();
        let mut predicted: Option<Prediction> = None;
        while let Some(value) = search.next() {
            let Some(attempt) = attempt::run(runner, task, self.param, value, &rooms)? else {
                return Ok(None);
            };
            on_attempt(&attempt);
            search.tried(value, attempt.has_room());
            attempts.push(attempt);
            let Some(ExpectedValue { value, by_law }) = expected(self.param, &attempts, &rooms)
            else {
                continue;
            };
            search.expect(value);
            if let Some(new) = by_law
                // The first prediction by a law is kept, because it was made with the fewest
                // attempts.
                && predicted.as_ref().is_none_or(|known| known.law != new.law)
            {
                predicted = Some(new);
            }
        }
        Ok(Some(Fitted { leg: task.leg.clone(), rooms, attempts, predicted }))
    }
}

/// The CPU has no capacity.
pub(crate) fn has_capacity(task: &Task) -> bool {
    task.leg.kind != DeviceKind::Cpu && task.family() == task.leg.family()
}
