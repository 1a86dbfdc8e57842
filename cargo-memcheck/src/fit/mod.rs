//! The largest value of a case that a device has room for: which test is meant,
//! one attempt, what the attempts so far let expect, and the search over them.
//! What is tried next is [`memcheck_core::search`].

mod attempt;
mod choose;
mod error;
mod expect;

use std::ops::RangeInclusive;

use memcheck_core::search::{Search, Start};
use memcheck_core::tolerance::Tolerance;

use crate::devices::{Kind, Leg};
use crate::error::Failure;
use crate::run::Runner;
use crate::task::Task;
use expect::{Expected, expected};

pub(crate) use attempt::{Attempt, Rooms};
pub(crate) use choose::{Wanted, choose, path};
pub(crate) use error::FitError;
pub(crate) use expect::Prediction;

/// What a search on one device came to.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    /// The device.
    pub(crate) leg: Leg,
    /// What there is on it, and what of that may be used.
    pub(crate) rooms: Rooms,
    /// In the order in which they were made.
    pub(crate) attempts: Vec<Attempt>,
    /// What the last law that was found had said.
    predicted: Option<Prediction>,
}

impl Fitted {
    /// The largest value that there was room for.
    pub(crate) fn largest(&self) -> Option<&Attempt> {
        let fitting = self.attempts.iter().filter(|attempt| attempt.has_room());
        fitting.max_by_key(|attempt| attempt.value)
    }

    /// The smallest value that there was none for.
    pub(crate) fn failed(&self) -> Option<&Attempt> {
        let failing = self.attempts.iter().filter(|attempt| !attempt.has_room());
        failing.min_by_key(|attempt| attempt.value)
    }

    /// What was predicted before the largest value was tried, by a law.
    pub(crate) fn predicted(&self) -> Option<&Prediction> {
        let largest = self.largest()?.value;
        let tried_before = self.attempts.iter().take_while(|tried| tried.value != largest).count();
        self.predicted.as_ref().filter(|predicted| predicted.attempts <= tried_before)
    }
}

/// What is searched for.
#[derive(Debug, Clone)]
pub(crate) struct Goal<'a> {
    /// The case.
    pub(crate) param: &'a str,
    /// Its values.
    pub(crate) range: RangeInclusive<u64>,
    /// What is left free of each device.
    pub(crate) margin: Tolerance,
    /// What no device is larger than.
    pub(crate) fits: Option<u64>,
}

impl Goal<'_> {
    /// Whether there is anything to search.
    pub(crate) fn check(&self) -> Result<(), FitError> {
        Search::new(self.range.clone(), Start::Lowest).map(drop).map_err(FitError::Range)
    }

    /// Searches on the device of a task; `None` where it was interrupted.
    pub(crate) fn search(
        &self,
        runner: &Runner<'_>,
        task: &Task,
        mut told: impl FnMut(&Attempt),
    ) -> Result<Option<Fitted>, Failure> {
        let mut search = Search::new(self.range.clone(), Start::Lowest).map_err(FitError::Range)?;
        let rooms = Rooms::of(&task.leg, self.margin, self.fits)?;
        let mut attempts = Vec::new();
        let mut predicted: Option<Prediction> = None;
        while let Some(value) = search.next() {
            let Some(attempt) = attempt::run(runner, task, self.param, value, &rooms)? else {
                return Ok(None);
            };
            told(&attempt);
            search.tried(value, attempt.has_room());
            attempts.push(attempt);
            let Some(Expected { value, by_law }) = expected(self.param, &attempts, &rooms) else {
                continue;
            };
            search.expect(value);
            if let Some(new) = by_law
                && predicted.as_ref().is_none_or(|known| known.law != new.law)
            {
                predicted = Some(new);
            }
        }
        Ok(Some(Fitted { leg: task.leg.clone(), rooms, attempts, predicted }))
    }
}

/// Whether a task says how much it may use.
pub(crate) fn has_capacity(task: &Task) -> bool {
    task.leg.kind != Kind::Cpu && task.entry.family_on(task.leg.family()) == task.leg.family()
}
