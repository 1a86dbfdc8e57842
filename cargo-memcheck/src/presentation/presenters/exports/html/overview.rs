//! The first page of a report as plain HTML, which needs no script: cards with the counts, and the
//! tests that did not pass by their kinds.

use std::collections::BTreeMap;
use std::time::Duration;

use maud::{Markup, html};
use memcheck_core::size::{counted, exact};

use super::failure::FailedTest;
use crate::presentation::origin::RunOrigin;
use crate::presentation::presenters::kinds::FailureKind;
use crate::presentation::tally::Tally;

/// More failures are in the table only. Those about memory come first.
pub(super) const MOST_FAILURES: usize = 100;

/// A card for the failures, and for each other count that is not zero; the script makes it a filter
/// of the table.
pub(super) fn cards(tally: &Tally) -> Markup {
    let cards = [
        ("failed", "failed", tally.failed),
        ("not-measured", "not measured", tally.not_measured),
        ("needs-review", "to review", tally.needs_review),
        ("passed", "passed", tally.passed),
        ("new", "without a baseline", tally.new),
        ("ignored", "ignored", tally.ignored),
        ("not-run", "not run", tally.not_run),
    ];
    html! {
        ul.cards {
            @for (name, text, count) in cards {
                // That no test has failed is known at the end only.
                @if count > 0 || name == "failed" && !tally.is_incomplete() {
                    li.card data-status=(name) data-count=(count) {
                        span.count { (exact(count as u64)) } span.word { (text) }
                    }
                }
            }
        }
    }
}

/// Which run this is: commit, branch, date, devices, time of its tests, command and version.
pub(super) fn origin(run: &RunOrigin, devices: &[String], took: Duration) -> Markup {
    let RunOrigin { project: _, commit, branch, lines: _, command, version, started } = run;
    html! {
        div.origin {
            @if let Some(commit) = commit { span { "commit " code { (commit.get(..12).unwrap_or(commit)) } } }
            @if let Some(branch) = branch { span { "branch " code { (branch) } } }
            span { (started.replace('T', " ").replace('Z', " UTC")) }
            @if !devices.is_empty() { span { "on " (devices.join(", ")) } }
            @if !took.is_zero() { span { (format!("{:.1} s", took.as_secs_f64())) " of test time" } }
            span { "memcheck " (version) }
            // One line, which opens.
            details.run { summary { code { (command) } } }
        }
    }
}

/// More are closed at first, so that all of them fit on a screen.
const MOST_OPEN: usize = 4;

/// The failures by their kind, memory first. Within a group those with the same cause follow one
/// another, the most frequent cause first. `count` is the number of all failures of the run.
pub(super) fn failures(all: &[FailedTest], count: usize) -> Markup {
    let mut shown: Vec<&FailedTest> = all.iter().collect();
    shown.sort_by_key(|failed| failed.kind);
    shown.truncate(MOST_FAILURES);
    let mut groups: BTreeMap<FailureKind, Vec<&FailedTest>> = BTreeMap::new();
    for failed in &shown {
        groups.entry(failed.kind).or_default().push(failed);
    }
    let more = count.saturating_sub(shown.len());
    html! {
        @for (kind, of) in &groups {
            section.failure-group {
                h3 { (kind.title()) " " span.muted { (counted(of.len() as u64, "test", "tests")) } }
                @for FailedTest { status, row, body, .. } in by_cause(of) {
                    details.failure.(status) open[count <= MOST_OPEN] {
                        summary { (row) }
                        (body)
                    }
                }
            }
        }
        @if more > 0 { p { (more) " more in the table" } }
    }
}

fn by_cause<'f>(all: &[&'f FailedTest]) -> Vec<&'f FailedTest> {
    let mut causes: Vec<(&str, Vec<&FailedTest>)> = Vec::new();
    for failure in all {
        match causes.iter_mut().find(|(cause, _)| *cause == failure.cause) {
            Some((_, of)) => of.push(failure),
            None => causes.push((&failure.cause, vec![failure])),
        }
    }
    causes.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
    causes.into_iter().flat_map(|(_, of)| of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_cut_short_has_no_card_without_failures() {
        let cut = Tally { passed: 3, interrupted: true, ..Tally::default() };
        assert!(!cards(&cut).into_string().contains("\"failed\""));
        let failed = Tally { failed: 1, ..cut.clone() };
        assert!(cards(&failed).into_string().contains("\"failed\""));
        assert!(cards(&Tally::default()).into_string().contains("\"failed\""));
    }

    fn failed(kind: FailureKind, cause: &str, name: &str) -> FailedTest {
        let (cause, row) = (cause.to_owned(), html! { (name) });
        FailedTest { kind, cause, status: "failed", row, body: html! {} }
    }

    #[test]
    fn failures_are_in_groups_with_memory_first_and_frequent_causes_first() {
        let all = [
            failed(FailureKind::End, "crashed", "abort"),
            failed(FailureKind::Growth, "a list", "pushes"),
            failed(FailureKind::Growth, "a graph", "keeps"),
            failed(FailureKind::Growth, "a graph", "holds"),
            failed(FailureKind::Regression, "peak-regression", "copies"),
        ];
        let page = failures(&all, 5).into_string();
        let order = [
            "<h3>Leaks <span class=\"muted\">3 tests</span></h3>",
            "keeps",
            "holds",
            "pushes",
            "<h3>Regressions <span class=\"muted\">1 test</span></h3>",
            "copies",
            "<h3>Crashes, panics and errors <span class=\"muted\">1 test</span></h3>",
            "abort",
        ];
        let found = order.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}: {page}")));
        assert!(found.is_sorted(), "{page}");
        assert_eq!(page.matches("<details").count(), 5);
        assert!(!page.contains(" open"), "five are closed: {page}");
        assert_eq!(failures(&all[..4], 4).into_string().matches(" open").count(), 4);
    }
}
