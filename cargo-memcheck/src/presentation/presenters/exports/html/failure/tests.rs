//! The cards of tests that did not pass: their lines, their order and their headlines.

use memcheck_core::judgement::finding::GrownHolder;

use super::*;
use crate::presentation::presenters::example::leaky;

#[test]
fn a_headline_has_binary_sizes_and_keeps_at_least() {
    let mut outcome = leaky();
    let finding = outcome.verdict.findings[0].clone();
    assert_eq!(finding.code, Code::Leak);
    let space = finding.space.unwrap();
    let exact = headline(&finding, &outcome);
    assert!(exact.starts_with(&format!("{space} grows by ")), "{exact}");
    assert!(!exact.contains(" B (") && exact.contains(" per iteration (limit "), "{exact}");
    let spaces = &mut outcome.report.as_mut().unwrap().record.spaces;
    let found = Growth::Found { whole: false, exact: false, iterations: 60 };
    spaces.get_mut(&space).unwrap().growth = found;
    let least = headline(&finding, &outcome);
    assert_eq!(least, exact.replace(" grows by ", " grows by at least "));
}

fn card(outcome: &TestOutcome, sources: &Sources) -> String {
    let task = crate::discovery::task::example::task();
    super::failure(&html! {}, &task, outcome, sources).body.into_string()
}

#[track_caller]
fn assert_order(card: &str, parts: &[&str]) {
    let found =
        parts.iter().map(|part| card.find(part).unwrap_or_else(|| panic!("{part}: {card}")));
    assert!(found.is_sorted(), "{parts:?}: {card}");
}

#[test]
fn a_crash_has_its_message_line_caller_and_last_output_and_then_the_command() {
    let mut outcome = leaky();
    let at = HeadLine { file: "a.rs".to_owned(), line: 2, function: Some("a".to_owned()) };
    let message = "SIGSEGV (signal 11) ended the process\ncalled from a.rs:9 (b)";
    let crash = Finding { keeps_at: Some(at.clone()), ..Finding::new(Code::Crashed, message) };
    outcome.output.stderr = "thread 'a' panicked at b.rs:20:5:\nwhy\nthe end".to_owned();
    outcome.verdict.findings = vec![crash.clone()];
    let whole = card(&outcome, &Sources::default());
    let order = [
        "SIGSEGV",
        "line: </strong><code>a.rs:2",
        "called from: </strong><code>a.rs:9",
        "last output: </strong><code>the end",
        "next: ",
        "<pre class=\"output\">",
    ];
    assert_order(&whole, &order);
    assert_eq!(whole.matches("class=\"place\"").count(), 2, "{whole}");
    let unknown = HeadLine { function: None, ..at };
    outcome.verdict.findings = vec![Finding { keeps_at: Some(unknown), ..crash }];
    let of_test = card(&outcome, &Sources::default());
    assert!(of_test.contains("the test: </strong><code>a.rs:2"), "{of_test}");
    assert!(!of_test.contains("class=\"place\"><strong>the test"), "{of_test}");
}

/// A killed process leaves no call stack: the body that it ran is below the line.
#[test]
fn the_line_that_iterates_has_the_source_of_its_body() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (1..=12).map(|line| format!("line {line};\n")).collect();
    std::fs::write(folder.path().join("a.rs"), text).unwrap();
    let sources = Sources::new(memcheck_core::judgement::location::Roots::new(folder.path(), None));
    let mut outcome = leaky();
    let at = HeadLine { file: "a.rs".to_owned(), line: 3, function: None };
    let early = Finding { keeps_at: Some(at), ..Finding::new(Code::Crashed, "SIGKILL") };
    outcome.verdict.findings = vec![Finding { iterates: true, ..early.clone() }];
    let killed = card(&outcome, &sources);
    let order =
        ["iterates here: </strong><code>a.rs:3", "<pre", "line 3;</mark>", "line 9;", "next: "];
    assert_order(&killed, &order);
    assert!(!killed.contains("line 2;") && !killed.contains("line 10;"), "{killed}");
    outcome.verdict.findings = vec![early];
    let of_test = card(&outcome, &sources);
    assert!(of_test.contains("the test: ") && !of_test.contains("<pre"), "{of_test}");
}

#[test]
fn kept_memory_has_the_lines_that_allocate_it_and_the_source_of_the_line_that_called_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rs"), "fn step() {\n    forward();\n    backward();\n}\n")
        .unwrap();
    let sources = Sources::new(memcheck_core::judgement::location::Roots::new(folder.path(), None));
    let mut outcome = leaky();
    let site = |line| Site { file: Some("a.rs".to_owned()), line: Some(line), ..Site::default() };
    let leak =
        Finding { sites: vec![site(2), site(3), site(2)], ..Finding::new(Code::Leak, "why") };
    outcome.verdict.findings = vec![leak.clone()];
    let own = card(&outcome, &sources);
    let source = "<mark class=\"line\"><span class=\"number\">    2</span>     forward();</mark>";
    let order = [
        "allocated at: </strong><code>a.rs:2</code> and 1 other line",
        "<pre class=\"snippet\"",
        source,
    ];
    assert_order(&own, &order);
    assert!(!own.contains("called from"), "{own}");
    let at = |line| Some(HeadLine { file: "a.rs".to_owned(), line, function: None });
    let called = Finding { keeps_at: at(1), kept_through: at(3), ..leak.clone() };
    outcome.verdict.findings = vec![called];
    let of_caller = card(&outcome, &sources);
    let order = [
        "kept by the result of: </strong><code>a.rs:3",
        "which holds the other tensors",
        "<mark class=\"line\"><span class=\"number\">    3</span>",
        "allocated in calls at: </strong><code>a.rs:1",
        "next: ",
    ];
    assert_order(&of_caller, &order);
    assert_eq!(of_caller.matches("<pre class=\"snippet\"").count(), 1, "{of_caller}");
    let cause = leaky().verdict.findings[0].cause.clone();
    outcome.verdict.findings = vec![Finding { kept_through: at(3), cause, ..leak }];
    let explained = card(&outcome, &sources);
    let order =
        ["<mark ", "remedy: ", "next: ", "evidence: ", "allocated at: </strong><code>a.rs:2"];
    assert_order(&explained, &order);
    assert_eq!(explained.matches("<pre class=\"snippet\"").count(), 1, "{explained}");
}

#[test]
fn a_closed_card_has_the_code_the_line_the_figures_and_the_cause() {
    let task = crate::discovery::task::example::task();
    let row = |outcome: &TestOutcome| {
        let failed = super::failure(&html! {}, &task, outcome, &Sources::default());
        let row = failed.row.into_string();
        row.split_once("<span class=\"brief\">").unwrap().1.to_owned()
    };
    let order = [
        "<span class=\"code\">leak</span> ",
        "<code class=\"at\">src/model.rs:20</code> ",
        "host grows by 2.00 MiB per iteration",
        "<strong>cause: </strong>a kept tensor holds the graph that computed it",
    ];
    assert_order(&row(&leaky()), &order);
    let mut outcome = leaky();
    let remedy = &outcome.verdict.findings[0].cause.as_ref().unwrap().remedy;
    let fix = format!("<span class=\"fix\"><strong>fix: </strong>{}", prose(remedy).into_string());
    assert!(row(&outcome).contains(&fix), "{}", row(&outcome));
    let of_test = HeadLine { file: "a.rs".to_owned(), line: 2, function: None };
    let killed = Finding { keeps_at: Some(of_test), ..Finding::new(Code::Crashed, "SIGKILL") };
    let at = HeadLine { function: Some("f".to_owned()), ..killed.keeps_at.clone().unwrap() };
    let crashed = Finding { keeps_at: Some(at), ..killed.clone() };
    let iterates = Finding { iterates: true, ..killed.clone() };
    outcome.output.stderr = "the end".to_owned();
    outcome.verdict.findings = vec![killed];
    let unknown = row(&outcome);
    assert_order(
        &unknown,
        &["the test at <code>", "SIGKILL; ", "last output: </strong><code>the end"],
    );
    assert!(!unknown.contains("fix: "), "{unknown}");
    outcome.verdict.findings = vec![iterates];
    assert_order(&row(&outcome), &["iterates here <code class=\"at\">a.rs:2</code>", "SIGKILL"]);
    outcome.verdict.findings = vec![crashed];
    assert!(row(&outcome).contains("<code class=\"at\">a.rs:2</code>"), "{}", row(&outcome));
    let peak = Finding { grown: vec![grown()], ..Finding::new(Code::PeakRegression, "higher") };
    outcome.verdict.findings = vec![peak];
    assert_order(&row(&outcome), &["<code class=\"at\">a.rs:9</code> higher; ", "is new"]);
}

fn grown() -> GrownHolder {
    let place = Some("a.rs:9".to_owned());
    GrownHolder { holder: "copy".to_owned(), place, now: 4, ..GrownHolder::default() }
}

#[test]
fn a_remark_is_in_the_card_of_a_test_that_nothing_else_fails() {
    let mut outcome = leaky();
    let improved = Finding::new(Code::Improved, "lower");
    outcome.verdict.findings.push(improved.clone());
    assert!(!card(&outcome, &Sources::default()).contains("improved"));
    outcome.verdict.findings = vec![improved];
    assert!(card(&outcome, &Sources::default()).contains("improved"));
}

#[test]
fn the_headline_of_a_peak_has_the_rise_first() {
    let finding = Finding {
        space: Some(memcheck_core::space::Space::Host),
        figure: Some(163_840),
        baseline: Some(98_304),
        ..Finding::new(Code::PeakRegression, "exact bytes")
    };
    let text = headline(&finding, &leaky());
    assert_eq!(text, "the peak of host rose by 64.0 KiB, from 96.0 KiB to 160.0 KiB");
    let grown = Finding { bytes_per_iteration: finding.figure, ..finding.clone() };
    let text = headline(&Finding { code: Code::GrowthRegression, ..grown }, &leaky());
    assert_eq!(
        text,
        "the growth of host per iteration rose by 64.0 KiB, from 96.0 KiB to 160.0 KiB"
    );
    let phase = Some("decode".to_owned());
    for other in [Finding { figure: Some(1), ..finding.clone() }, Finding { phase, ..finding }] {
        assert_eq!(headline(&other, &leaky()), "exact bytes");
    }
}
