//! The summary at the end of a run, with commands for the next steps.

use std::collections::BTreeSet;
use std::path::Path;

use memcheck_core::wire::exit;

use super::style;
use crate::invocation::options::Pending;
use crate::invocation::printed::PrintedCommand;
use crate::invocation::suggestion::suggestion;
use crate::invocation::values::NoTests;
use crate::presentation::tally::{Repeated, Tally};

/// The results of the tests, and how many lack a baseline.
pub(super) fn counts(tally: &Tally) -> String {
    // These tests are counted by their result, too.
    let without = match tally.new {
        0 => String::new(),
        1 if tally.ran() == 1 => " (1 without a baseline)".to_owned(),
        new if new == tally.ran() => " (all without a baseline)".to_owned(),
        // A test that did not end has no figures to compare.
        1 => " (1 measured test without a baseline)".to_owned(),
        new => format!(" ({new} measured tests without a baseline)"),
    };
    results(tally) + &without
}

/// `3 passed, 0 failed`.
pub(super) fn results(tally: &Tally) -> String {
    let Tally {
        passed,
        failed,
        new: _,
        new_tests: _,
        new_pending: _,
        not_measured,
        ignored,
        needs_review,
        elsewhere,
        not_run,
        no_device: _,
        denied: _,
        pending: _,
        interrupted: _,
        failure: _,
        unstarted: _,
        not_started: _,
        repeated: _,
        took: _,
    } = tally;
    let mut parts = vec![format!("{passed} passed")];
    // That no test has failed is known at the end only.
    if *failed > 0 || !tally.is_incomplete() {
        parts.push(format!("{failed} failed"));
    }
    for (count, word) in [
        (not_measured, "not measured"),
        (needs_review, "to review"),
        (ignored, "ignored"),
        (elsewhere, "not for this device"),
        (not_run, "not run"),
    ] {
        if *count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.extend(tally.is_incomplete().then(|| "incomplete".to_owned()));
    parts.join(", ")
}

/// True if the last line of the summary names the tests that lack nothing but a baseline, with the
/// command that accepts them.
pub(super) fn names_new_tests(tally: &Tally, pending: &Pending) -> bool {
    let named: BTreeSet<&String> = tally.new_pending.iter().collect();
    *pending != Pending::Unlisted && named.into_iter().eq(&tally.new_tests) && tally.new > 0
}

/// `2 pending snapshots of tests without a baseline (decode, prefill)`. If others are pending too, these
/// are a part of them.
fn pending_snapshots(tally: &Tally) -> String {
    let of =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let (count, new) = (tally.pending.len(), tally.new_pending.len().min(tally.pending.len()));
    let all = of(count, "pending snapshot");
    let names: BTreeSet<&str> = tally.new_pending.iter().map(String::as_str).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names[..names.len().min(MOST_NEW)].join(", ");
    let more = match names.len().saturating_sub(MOST_NEW) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match new {
        0 => all,
        1 if count == 1 => format!("{all} of a test without a baseline ({shown})"),
        new if new == count => format!("{all} of tests without a baseline ({shown}{more})"),
        new => format!("{all}, {new} of them without a baseline ({shown}{more})"),
    }
}

/// `without a baseline: decode, llama::kv_cache`; `None` if all tests lack one.
pub(super) fn without_baseline(tally: &Tally) -> Option<String> {
    let names = tally.new_tests.iter().map(String::as_str).collect::<Vec<_>>();
    (tally.new < tally.ran()).then_some(())?;
    named("without a baseline", &names)
}

/// The reasons why the counts are incomplete: an error that ended the run, or a signal.
pub(super) fn cut_short(tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(failure) = &tally.failure {
        lines.push(format!("error: {}", failure.message));
        lines.extend(failure.hint.iter().map(|hint| format!("hint: {hint}")));
    }
    if tally.interrupted {
        lines.push("interrupted: the counts are incomplete".to_owned());
    }
    if !tally.unstarted.is_empty() {
        lines.push(format!("not run on {}: the run ended early", tally.unstarted.join(", ")));
    }
    lines.extend(not_started(tally));
    lines
}

/// `3 notes on passing tests: --verbose shows them`; `None` without one.
pub(super) fn unprinted(notes: usize) -> Option<String> {
    let (what, them) = match notes {
        0 => return None,
        1 => ("1 note".to_owned(), "it"),
        notes => (format!("{notes} notes"), "them"),
    };
    Some(format!("{what} on passing tests: --verbose shows {them}"))
}

/// More tests without a baseline are counted, because they are many in a first run.
const MOST_NEW: usize = 3;
/// More tests are counted.
const MOST_NAMES: usize = 8;

/// `not started: decode, llama::kv_cache and 12 more`, of a run that was killed.
fn not_started(tally: &Tally) -> Option<String> {
    let names = tally.not_started.iter().map(String::as_str).collect::<Vec<_>>();
    named("not started", &names)
}

fn named(what: &str, names: &[&str]) -> Option<String> {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("{what}: {shown}{more}"))
}

/// "288 tests, 30 runs each: all figures identical".
pub(super) fn repeated(tally: &Tally) -> Option<String> {
    let Repeated { runs, tests, identical } = tally.repeated?;
    let plural = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    };
    let result = match tests - identical {
        0 => "all figures identical".to_owned(),
        differing => format!("figures differ in {}", plural(differing, "test")),
    };
    let runs = plural(runs as usize, "run");
    Some(format!("{}, {runs} each: {result}", plural(tests, "test")))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Unselected {
    pub(crate) elsewhere: bool,
    pub(crate) ignored: bool,
}

impl Unselected {
    pub(crate) fn describe(self, filters: &[String]) -> String {
        let quoted: Vec<String> = filters.iter().map(|filter| format!("`{filter}`")).collect();
        let by = match quoted.as_slice() {
            [] => String::new(),
            [only] => format!(" by the filter {only}"),
            several => format!(" by the filters {}", several.join(", ")),
        };
        let why = match self {
            Self { elsewhere: true, .. } => {
                ": the matching tests are for another device (--device)"
            }
            Self { ignored: true, .. } => ": the matching tests are ignored (--run-ignored all)",
            Self { elsewhere: false, ignored: false } => "",
        };
        format!("no test was selected{by}{why}")
    }
}

pub(super) fn next_steps(
    tally: &Tally,
    filters: &[String],
    (pending, baselines): (&Pending, &[String]),
    no_tests: NoTests,
) -> Vec<String> {
    let mut lines = Vec::new();
    if tally.interrupted {
        lines.push(style::warning("interrupted: the counts are incomplete"));
    }
    if !tally.unstarted.is_empty() {
        let devices = tally.unstarted.join(", ");
        lines.push(style::warning(&format!("not run on {devices}: the run ended early")));
    }
    lines.extend(not_started(tally));
    if tally.ran() == 0
        && !tally.interrupted
        && tally.failure.is_none()
        && no_tests != NoTests::Pass
    {
        let why = Unselected { elsewhere: tally.elsewhere > 0, ignored: tally.ignored > 0 };
        let line = why.describe(filters);
        let fails = no_tests == NoTests::Fail;
        lines.push(if fails { style::error(&line) } else { style::warning(&line) });
        let meant = suggestion(filters);
        lines.extend(meant.map(|meant| format!("{} {meant}", style::hint("hint:"))));
    }
    if !tally.denied.is_empty() {
        let codes: Vec<&str> = tally.denied.iter().map(|code| code.name()).collect();
        lines.push(format!("denied: {} (exit code {})", codes.join(", "), exit::DENIED));
    }
    if !tally.pending.is_empty() {
        let what = pending_snapshots(tally);
        let next = |command: PrintedCommand, words: &[&str]| {
            let words = words.iter().copied().chain(baselines.iter().map(String::as_str));
            style::hint(&command.with(words))
        };
        let [review, accept] = [PrintedCommand::ReviewSnapshots, PrintedCommand::AcceptSnapshots];
        lines.extend(match pending {
            // To accept all would accept the regression of a test that failed, too. The lines of
            // such a test have the command for its own snapshot.
            Pending::NextToBaselines if tally.failed > 0 => {
                Some(format!("{what}: {}", next(review, &[])))
            }
            Pending::NextToBaselines => {
                Some(format!("{what}: {}, or {}", next(review, &[]), next(accept, &[])))
            }
            Pending::In(folder) => Some(format!(
                "{what} in {}: fetch them, then {}",
                shown(folder),
                next(PrintedCommand::AcceptFetchedSnapshots, &["--from", "DIR"])
            )),
            Pending::Unlisted => None,
        });
    }
    lines
}

/// Relative to the current folder if that contains it.
fn shown(folder: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(here).unwrap_or(folder).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::escape;

    #[test]
    fn zero_counts_are_not_printed() {
        let tally = Tally { passed: 3, ignored: 1, ..Tally::default() };
        assert_eq!(counts(&tally), "3 passed, 0 failed, 1 ignored");
        let elsewhere = Tally { elsewhere: 2, ..tally.clone() };
        assert_eq!(counts(&elsewhere), "3 passed, 0 failed, 1 ignored, 2 not for this device");
        assert!(
            next_steps(&tally, &[], (&Pending::NextToBaselines, &[]), NoTests::Fail).is_empty()
        );
    }

    #[test]
    fn the_counts_add_up_to_the_tests_and_those_without_a_baseline_are_named() {
        let tally = |new: usize, names: &[&str]| Tally {
            passed: 1,
            failed: 4,
            ignored: 1,
            new,
            new_tests: names.iter().map(|&name| name.to_owned()).collect(),
            ..Tally::default()
        };
        let some = tally(1, &["a::b"]);
        assert_eq!(
            counts(&some),
            "1 passed, 4 failed, 1 ignored (1 measured test without a baseline)"
        );
        assert_eq!(without_baseline(&some).unwrap(), "without a baseline: a::b");
        let all = tally(5, &["a", "b", "c", "d", "e"]);
        assert_eq!(counts(&all), "1 passed, 4 failed, 1 ignored (all without a baseline)");
        assert_eq!(without_baseline(&all), None);
        assert_eq!(without_baseline(&tally(0, &[])), None);
    }

    #[test]
    fn the_line_of_the_pending_snapshots_names_three_of_the_new_tests() {
        let names = |count: usize| (0..count).map(|test| format!("t{test}")).collect::<Vec<_>>();
        let with = |new: usize, pending: usize| {
            let new_tests = names(new).into_iter().collect();
            let pending = names(pending).into_iter().map(Into::into).collect();
            Tally {
                passed: 9,
                new,
                new_tests,
                new_pending: names(new),
                pending,
                ..Tally::default()
            }
        };
        let text = |new, pending| pending_snapshots(&with(new, pending));
        assert_eq!(text(0, 2), "2 pending snapshots");
        assert_eq!(text(1, 1), "1 pending snapshot of a test without a baseline (t0)");
        assert_eq!(text(2, 2), "2 pending snapshots of tests without a baseline (t0, t1)");
        let five = "5 pending snapshots of tests without a baseline (t0, t1, t2 and 2 more)";
        assert_eq!(text(5, 5), five);
        assert_eq!(text(1, 3), "3 pending snapshots, 1 of them without a baseline (t0)");
        let all = with(2, 2);
        assert!(names_new_tests(&all, &Pending::NextToBaselines));
        assert!(!names_new_tests(&all, &Pending::Unlisted), "there is no such line");
        let failed = Tally { new_pending: names(1), ..all };
        assert!(!names_new_tests(&failed, &Pending::NextToBaselines), "t1 has no snapshot");
        assert!(!names_new_tests(&with(0, 2), &Pending::NextToBaselines));
    }

    #[test]
    fn a_run_with_a_failed_test_does_not_offer_to_accept_all_snapshots() {
        let offered = |failed| {
            let pending = vec!["/w/a.snap.new".into()];
            let tally = Tally { passed: 1, failed, pending, ..Tally::default() };
            let next = (&Pending::NextToBaselines, [].as_slice());
            let lines = next_steps(&tally, &[], next, NoTests::Fail);
            console::strip_ansi_codes(&escape::terminal(&lines[0])).into_owned()
        };
        let review = "1 pending snapshot: cargo memcheck review";
        assert_eq!(offered(0), format!("{review}, or cargo memcheck accept"));
        assert_eq!(offered(1), review);
    }

    #[test]
    fn notes_that_are_not_printed_are_counted() {
        assert_eq!(unprinted(0), None);
        let one = "1 note on passing tests: --verbose shows it";
        assert_eq!(unprinted(1).unwrap(), one);
        assert!(unprinted(3).unwrap().starts_with("3 notes on passing tests: "));
    }

    #[test]
    fn a_run_that_was_cut_short_does_not_state_that_no_test_failed() {
        let cut = Tally { passed: 3, interrupted: true, ..Tally::default() };
        assert_eq!(counts(&cut), "3 passed, incomplete");
        let failed = Tally { failed: 2, ..cut };
        assert_eq!(counts(&failed), "3 passed, 2 failed, incomplete");
        let unstarted = Tally { unstarted: vec!["cpu".to_owned()], ..Tally::default() };
        assert_eq!(counts(&unstarted), "0 passed, incomplete");
    }

    #[test]
    fn the_tests_that_a_killed_run_had_not_started_are_named() {
        let names = |count| (0..count).map(|number| format!("t{number}")).collect();
        let of = |count| not_started(&Tally { not_started: names(count), ..Tally::default() });
        assert_eq!(of(0), None);
        assert_eq!(of(2).unwrap(), "not started: t0, t1");
        assert_eq!(of(10).unwrap(), "not started: t0, t1, t2, t3, t4, t5, t6, t7 and 2 more");
        let tally = Tally { not_started: names(1), ..Tally::default() };
        assert_eq!(cut_short(&tally), ["not started: t0"]);
    }

    #[test]
    fn repeats_are_counted_by_test() {
        let of = |runs, tests, identical| {
            repeated(&Tally {
                repeated: Some(Repeated { runs, tests, identical }),
                ..Tally::default()
            })
            .unwrap()
        };
        assert_eq!(of(30, 288, 288), "288 tests, 30 runs each: all figures identical");
        assert_eq!(of(30, 288, 287), "288 tests, 30 runs each: figures differ in 1 test");
        assert_eq!(of(1, 1, 1), "1 test, 1 run each: all figures identical");
        assert_eq!(repeated(&Tally::default()), None);
    }

    #[test]
    fn a_run_without_tests_names_the_filters() {
        let described = |tally: &Tally, filters: &[&str]| {
            let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
            let steps =
                next_steps(tally, &filters, (&Pending::NextToBaselines, &[]), NoTests::Fail);
            console::strip_ansi_codes(&steps[0]).into_owned()
        };
        let (none, ignored) = (Tally::default(), Tally { ignored: 2, ..Tally::default() });
        assert_eq!(described(&none, &[]), "no test was selected");
        assert_eq!(
            described(&none, &["lsit", "a"]),
            "no test was selected by the filters `lsit`, `a`"
        );
        assert_eq!(
            described(&ignored, &["a"]),
            "no test was selected by the filter `a`: the matching tests are ignored \
             (--run-ignored all)"
        );
    }
}
