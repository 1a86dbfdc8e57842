//! Counts outcomes, and derives the exit code from the counts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use memcheck_core::judgement::finding::{Code, Level};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::wire::exit;
use serde::Serialize;

use crate::discovery::task::TestOutcome;
use crate::execution::note::Note;
use crate::invocation::values::NoTests;
use crate::system::error::Reported;
use crate::system::process::INTERRUPTED;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Repeated {
    pub(crate) runs: u32,
    /// Those whose runs all ended normally.
    pub(crate) tests: usize,
    /// Those of `tests` whose figures are identical in all runs.
    pub(crate) identical: usize,
}

impl Repeated {
    fn add(&mut self, other: Self) {
        self.runs = self.runs.max(other.runs);
        self.tests += other.tests;
        self.identical += other.identical;
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// By a measured finding.
    pub(crate) failed: usize,
    /// Tests without a baseline. Their status counts too.
    pub(crate) new: usize,
    /// Their names, each once.
    pub(crate) new_tests: BTreeSet<String>,
    /// The name of each test without a baseline whose pending snapshot was written; a test has one for
    /// each device.
    pub(crate) new_pending: Vec<String>,
    /// Tests without a complete record.
    pub(crate) not_measured: usize,
    /// Those of `not_measured` whose device could not be opened.
    pub(crate) no_device: usize,
    pub(crate) ignored: usize,
    /// Tests within their limits that have a denied bookkeeping finding.
    pub(crate) needs_review: usize,
    /// Selected tests that need another device than those of this run.
    pub(crate) elsewhere: usize,
    /// Selected, but the run ended before.
    pub(crate) not_run: usize,
    /// Bookkeeping findings of tests and of the workspace.
    pub(crate) denied: BTreeSet<Code>,
    pub(crate) pending: Vec<PathBuf>,
    pub(crate) interrupted: bool,
    pub(crate) failure: Option<Reported>,
    /// Devices whose tests were not started because the run ended before.
    pub(crate) unstarted: Vec<String>,
    pub(crate) repeated: Option<Repeated>,
    /// The names of the tests of `not_run`, if the run was killed.
    pub(crate) not_started: Vec<String>,
    /// Wall time of the tests, without the builds.
    pub(crate) took: Duration,
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &TestOutcome) {
        let verdict = &outcome.verdict;
        match verdict.status {
            Status::Passed => self.passed += 1,
            Status::NeedsReview => self.needs_review += 1,
            Status::Failed => self.failed += 1,
            Status::NotMeasured => self.not_measured += 1,
            Status::Ignored => self.ignored += 1,
        }
        if verdict.has(Code::NoDevice) {
            self.no_device += 1;
        }
        if verdict.has(Code::MissingBaseline) {
            self.new += 1;
            let report = outcome.report.as_ref();
            let name = report.map(|report| report.record.test.clone());
            self.new_pending.extend(name.clone().filter(|_| outcome.pending().is_some()));
            self.new_tests.extend(name);
        }
        let repeats = outcome.report.as_ref().and_then(|report| report.record.repeats.as_ref());
        if let Some((repeats, runs)) = repeats.and_then(|all| Some((all, all.asked?))) {
            let identical = usize::from(repeats.ranges().is_empty());
            let repeated = self.repeated.get_or_insert_default();
            repeated.add(Repeated { runs, tests: 1, identical });
        }
        self.denied.extend(&verdict.denied);
        self.pending.extend(outcome.pending().map(std::path::Path::to_owned));
        self.pending.extend(outcome.across.pending.clone());
    }

    pub(crate) fn note(&mut self, note: &Note) {
        if note.level == Level::Deny {
            self.denied.insert(note.finding.code);
        }
    }

    pub(crate) fn join(&mut self, leg: Self) {
        // The pattern names every field, so that a new field cannot be forgotten.
        let Self {
            passed,
            failed,
            new,
            new_tests,
            new_pending,
            not_measured,
            no_device,
            ignored,
            needs_review,
            elsewhere,
            not_run,
            denied,
            pending,
            interrupted,
            failure,
            unstarted,
            not_started,
            repeated,
            took,
        } = leg;
        self.passed += passed;
        self.failed += failed;
        self.new += new;
        self.new_tests.extend(new_tests);
        self.new_pending.extend(new_pending);
        self.not_measured += not_measured;
        self.no_device += no_device;
        self.ignored += ignored;
        self.needs_review += needs_review;
        // Results from a file can have any number here, and any time.
        self.elsewhere = self.elsewhere.saturating_add(elsewhere);
        self.not_run = self.not_run.saturating_add(not_run);
        self.denied.extend(denied);
        self.pending.extend(pending);
        self.interrupted |= interrupted;
        self.failure = self.failure.take().or(failure);
        self.unstarted.extend(unstarted);
        self.not_started.extend(not_started);
        if let Some(repeated) = repeated {
            self.repeated.get_or_insert_default().add(repeated);
        }
        self.took = self.took.saturating_add(took);
    }

    pub(crate) fn sort(&mut self) {
        self.pending.sort();
        self.pending.dedup();
    }

    /// True if an error or a signal ended the run, so that none of the counts is final.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.interrupted || self.failure.is_some() || !self.unstarted.is_empty()
    }

    pub(crate) fn ran(&self) -> usize {
        self.passed + self.failed + self.not_measured + self.needs_review
    }

    /// A measured failure is graver than a test that was not measured, because it is certain.
    pub(crate) fn exit_code(&self, no_tests: NoTests) -> u8 {
        if let Some(failure) = &self.failure {
            failure.exit_code
        } else if self.interrupted {
            INTERRUPTED
        } else if self.failed > 0 {
            exit::FAILED
        } else if self.no_device > 0 {
            exit::NO_DEVICE
        } else if self.not_measured > 0 {
            exit::NOT_MEASURED
        } else if self.needs_review > 0 || !self.denied.is_empty() {
            exit::DENIED
        } else if self.ran() == 0 && no_tests == NoTests::Fail {
            exit::NO_TESTS
        } else {
            exit::OK
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(change: impl FnOnce(&mut Tally)) -> u8 {
        let mut tally = Tally { passed: 3, ..Tally::default() };
        change(&mut tally);
        tally.exit_code(NoTests::Fail)
    }

    #[test]
    fn the_gravest_result_decides_the_exit_code() {
        assert_eq!(code(|_| {}), exit::OK);
        assert_eq!(code(|t| t.needs_review = 1), exit::DENIED);
        assert_eq!(code(|t| t.denied = [Code::NotBuilt].into()), exit::DENIED);
        assert_eq!(code(|t| (t.needs_review, t.not_measured) = (1, 1)), exit::NOT_MEASURED);
        assert_eq!(code(|t| (t.no_device, t.not_measured) = (1, 2)), exit::NO_DEVICE);
        assert_eq!(code(|t| (t.failed, t.no_device) = (1, 1)), exit::FAILED);
        assert_eq!(code(|t| (t.failed, t.not_measured) = (1, 1)), exit::FAILED);
        assert_eq!(code(|t| (t.failed, t.interrupted) = (1, true)), INTERRUPTED);
        let failure = Reported { exit_code: exit::BUILD, message: String::new(), hint: None };
        assert_eq!(code(|t| (t.failed, t.failure) = (1, Some(failure))), exit::BUILD);
    }

    #[test]
    fn the_counts_of_two_devices_add_up() {
        let leg = |passed, took| Tally {
            passed,
            took: Duration::from_secs(took),
            pending: vec!["a.snap.new".into()],
            ..Tally::default()
        };
        let mut all = leg(3, 2);
        all.join(Tally { not_run: 4, interrupted: true, ..leg(1, 1) });
        all.sort();
        let expected = Tally { not_run: 4, interrupted: true, ..leg(4, 3) };
        assert_eq!(all, expected);
    }

    #[test]
    fn counts_of_a_file_do_not_overflow() {
        let most =
            Tally { elsewhere: usize::MAX, not_run: 1, took: Duration::MAX, ..Tally::default() };
        let mut all = most.clone();
        all.join(most);
        assert_eq!((all.elsewhere, all.not_run, all.took), (usize::MAX, 2, Duration::MAX));
    }

    #[test]
    fn a_run_without_tests_fails_unless_a_flag_allows_it() {
        let nothing = Tally { ignored: 2, elsewhere: 1, ..Tally::default() };
        assert_eq!(nothing.exit_code(NoTests::Fail), exit::NO_TESTS);
        assert_eq!(nothing.exit_code(NoTests::Warn), exit::OK);
        assert_eq!(nothing.exit_code(NoTests::Pass), exit::OK);
    }
}
