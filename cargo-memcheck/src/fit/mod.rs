//! The largest value of a case that a device has room for: which test is meant,
//! one attempt, and the search over them. What is tried next is
//! [`memcheck_core::search`].

mod attempt;
mod choose;
mod error;

use std::ops::RangeInclusive;

use memcheck_core::search::{Search, Start};
use memcheck_core::tolerance::Tolerance;

use crate::devices::{Kind, Leg};
use crate::error::Failure;
use crate::run::Runner;
use crate::task::Task;

pub(crate) use attempt::{Attempt, Rooms};
pub(crate) use choose::{Wanted, choose, path};
pub(crate) use error::FitError;

/// What a search on one device came to.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    /// The device.
    pub(crate) leg: Leg,
    /// What there is on it, and what of that may be used.
    pub(crate) rooms: Rooms,
    /// In the order in which they were made.
    pub(crate) attempts: Vec<Attempt>,
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
        while let Some(value) = search.next() {
            let Some(attempt) = attempt::run(runner, task, self.param, value, &rooms)? else {
                return Ok(None);
            };
            told(&attempt);
            search.tried(value, attempt.has_room());
            attempts.push(attempt);
            if let Some(value) = expected(&attempts, &rooms) {
                search.expect(value);
            }
        }
        Ok(Some(Fitted { leg: task.leg.clone(), rooms, attempts }))
    }
}

/// How many times the largest value that had room may be tried at once: a peak
/// that rises faster than the value would make the step far too long.
const LONGEST_STEP: u64 = 8;

/// The largest value that is expected to have room, where peaks rise as they did
/// from one attempt to the next: on a straight line through the last two.
fn expected(attempts: &[Attempt], rooms: &Rooms) -> Option<u64> {
    let mut fitting: Vec<&Attempt> = attempts.iter().filter(|tried| tried.has_room()).collect();
    fitting.sort_by_key(|tried| std::cmp::Reverse(tried.value));
    let [last, before, ..] = fitting.as_slice() else { return None };
    let of_space = |space| {
        let (peak, earlier) = (*last.peaks.get(space)?, *before.peaks.get(space)?);
        let (_, usable) = rooms.of_space(*space)?;
        let rise = u128::from(peak.checked_sub(earlier).filter(|&rise| rise > 0)?);
        let left = u128::from(usable.saturating_sub(peak));
        let more = left * u128::from(last.value - before.value) / rise;
        Some(last.value.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)))
    };
    let nearest = last.peaks.keys().filter_map(of_space).min()?;
    Some(nearest.min(last.value.saturating_mul(LONGEST_STEP)))
}

/// Whether a task says how much it may use.
pub(crate) fn has_capacity(task: &Task) -> bool {
    task.leg.kind != Kind::Cpu && task.entry.family_on(task.leg.family()) == task.leg.family()
}
