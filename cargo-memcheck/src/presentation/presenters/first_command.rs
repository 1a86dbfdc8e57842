//! Tests that every form of output names the same first command for a test, whatever its finding is.

use memcheck_core::judgement::finding::{Code, Finding, TABLE};
use memcheck_core::judgement::verdict::{Status, Verdict};
use serde_json::Value;

use super::every;
use super::example::leaky;
use super::exports::html::readable;
use super::exports::markdown::inline::code;
use super::next_step;
use crate::discovery::task::TestOutcome;
use crate::discovery::task::example::task;

/// A test that has failed by this code, with or without a pending snapshot and a panic that offers a
/// backtrace.
fn outcome(found: Code, is_pending: bool, panicked: bool) -> TestOutcome {
    let mut outcome = leaky();
    let findings = vec![Finding::new(found, "message")];
    outcome.verdict = Verdict { status: Status::Failed, findings, denied: vec![found] };
    let report = outcome.report.as_mut().unwrap();
    report.verdict = outcome.verdict.clone();
    report.snapshot = Some("/w/snapshots/a@cpu.snap".into());
    report.pending = is_pending.then(|| "/w/snapshots/a@cpu.snap.new".into());
    if panicked {
        outcome.output.stderr =
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"
                .to_owned();
    }
    outcome
}

/// Everything behind a mark, up to the end of the line.
fn after<'t>(text: &'t str, mark: &str) -> &'t str {
    let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no `{mark}` in\n{text}"));
    rest.lines().next().unwrap_or_default()
}

/// The words before the first command, in texts that name several.
fn words(outcome: &TestOutcome) -> &'static str {
    let (task, first) = (task(), next_step::first(&task(), outcome));
    let advised = next_step::advised(&task, outcome).into_iter();
    advised.filter(|(_, step)| Some(step) == first.as_ref()).map(|(when, _)| when).next().unwrap()
}

/// The first command in each form.
fn shown(outcome: &TestOutcome) -> Vec<(&'static str, String)> {
    let task = task();
    let words = format!("{} ", words(outcome));
    let mut begin = words.clone();
    begin[..1].make_ascii_uppercase();
    let report = every::reports_of(&task, outcome);
    let sarif: Value = serde_json::from_str(&report("sarif")).unwrap();
    let next = &sarif["runs"][0]["results"][0]["properties"]["nextStep"];
    let annotation = every::annotations().of_test(&task, outcome).remove(0).text;
    let annotation = annotation.replace("%0A", "\n").replace("%25", "%");
    let codes = next_step::codes(&outcome.verdict);
    let mut terminal = every::terminal();
    terminal.keep_failure(&task, outcome);
    let failures = crate::system::escape::terminal(&terminal.failures().join("\n"));
    let failures = console::strip_ansi_codes(&failures).into_owned();
    // The test with its codes, the cause, and the commands, each with its words if there are several.
    let (_, below) = failures.split_once(&codes).unwrap();
    let command = after(below, &words).trim();
    let html = report("html");
    let html = readable(after(&html, "next: </strong>"));
    let xml = report("junit").replace("&apos;", "'").replace("&amp;", "&");
    vec![
        ("terminal", command.to_owned()),
        ("annotation", after(&annotation, &words).to_owned()),
        ("sarif", next.as_str().unwrap().to_owned()),
        ("junit", after(&xml, &words).trim_end_matches("</failure>").to_owned()),
        // A line that is not the last of its paragraph ends with a backslash.
        ("markdown", after(&report("markdown"), &begin).trim_end_matches('\\').to_owned()),
        ("html", html),
    ]
}

#[test]
fn every_form_names_the_same_first_command_for_every_finding() {
    for row in TABLE {
        for (is_pending, panicked) in [(false, false), (true, false), (false, true)] {
            let outcome = outcome(row.code, is_pending, panicked);
            let first = next_step::first(&task(), &outcome).unwrap().command(&task(), &[]);
            for (form, command) in shown(&outcome) {
                let is_same = match form {
                    "markdown" => command == code(&first),
                    "html" => command.contains(&first),
                    _ => command == first,
                };
                assert!(is_same, "{}: {form} has `{command}` instead of `{first}`", row.name);
            }
        }
    }
}

#[test]
fn every_text_names_the_snapshot_to_accept_once_for_all_findings() {
    let mut outcome = outcome(Code::PeakRegression, true, false);
    outcome.verdict.findings.push(Finding::new(Code::GrowthRegression, "message"));
    let task = task();
    let command = "cargo memcheck accept a@cpu.snap";
    let report = every::reports_of(&task, &outcome);
    let mut terminal = every::terminal();
    terminal.keep_failure(&task, &outcome);
    let failures = terminal.failures().join("\n");
    let terminal = terminal.result(&task, &outcome).join("\n");
    for text in [terminal, failures, report("junit"), report("markdown")] {
        assert_eq!(text.matches("memcheck accept").count(), 1, "{text}");
        assert!(text.contains(command) && text.contains("intended"), "{text}");
    }
}
