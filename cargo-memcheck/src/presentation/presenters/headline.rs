//! Tests that every form of output begins with the same line: that of the README's example, and of a
//! loss that several lines of a layer compute.

use memcheck_core::growth::survivors::{Group, Pattern, Reading};
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::judgement::verdict::judge;
use memcheck_core::measurement::attribution::{Attribution, HeldBy, Survivors, Tensor};
use memcheck_core::measurement::stack::{Frame, Stack};
use memcheck_core::space::Space;
use serde_json::Value;

use super::every;
use super::example::leaky;
use super::{findings, json};
use crate::discovery::task::TestOutcome;
use crate::discovery::task::example::task;
use crate::invocation::values::{ReportKind, Verbosity};

/// A surviving tensor of each iteration: its operation and shape, and the lines that lead to it. The
/// last line repeats the body.
struct KeptSite {
    operation: &'static str,
    shape: &'static [u64],
    calls: &'static [(&'static str, u32)],
}

const BODY: (&str, u32) = ("mem::training_step::body", 10);
const LOSS: (&str, u32) = ("mem::training_step::body::{{closure}}", 11);
const TOTAL: (&str, u32) = ("mem::training_step::body::{{closure}}", 13);

/// `let loss = batch.matmul(&weights)?.relu()?.mean_all()?` and `total = (&total + &loss)?`.
const README: [KeptSite; 4] = [
    KeptSite { operation: "matmul", shape: &[64, 256], calls: &[LOSS, BODY] },
    KeptSite { operation: "relu", shape: &[64, 256], calls: &[LOSS, BODY] },
    KeptSite { operation: "mean_all", shape: &[], calls: &[LOSS, BODY] },
    KeptSite { operation: "add", shape: &[], calls: &[TOTAL, BODY] },
];

/// `let loss = layer.loss(&batch)?`, of which a method has three lines.
const LAYERED: [KeptSite; 4] = [
    KeptSite {
        operation: "matmul",
        shape: &[64, 256],
        calls: &[("mem::Layer::loss", 3), LOSS, BODY],
    },
    KeptSite {
        operation: "relu",
        shape: &[64, 256],
        calls: &[("mem::Layer::loss", 4), LOSS, BODY],
    },
    KeptSite { operation: "sqr", shape: &[64, 256], calls: &[("mem::Layer::loss", 5), LOSS, BODY] },
    KeptSite { operation: "add", shape: &[], calls: &[TOTAL, BODY] },
];

impl KeptSite {
    fn stack(&self) -> Stack {
        let candle = format!("candle_core::tensor::Tensor::{}", self.operation);
        let candle = Frame { function: candle, file: None, line: None };
        let line = |(function, line): &(&str, u32)| Frame {
            function: (*function).to_owned(),
            file: Some("tests/mem.rs".to_owned()),
            line: Some(*line),
        };
        let frames = [candle].into_iter().chain(self.calls.iter().map(line)).collect();
        Stack { frames, outside: 1, ..Stack::default() }
    }

    fn survivors(&self, stack: usize) -> Survivors {
        let bytes = 4 * self.shape.iter().product::<u64>();
        Survivors {
            space: Space::Host,
            stack,
            scope: String::new(),
            tensors: vec![Tensor { shape: self.shape.to_vec(), dtype: "f32".to_owned() }],
            group: Group {
                block: Some(bytes),
                births: vec![1; 10],
                bytes: vec![bytes; 10],
                live: (3..=12).collect(),
                live_bytes: (3..=12).map(|blocks| blocks * bytes).collect(),
                reading: Reading {
                    pattern: Pattern::Steady,
                    bytes_per_iteration: bytes,
                    period: 1,
                    bytes,
                    last: 0,
                    groups: 1,
                },
                ..Group::default()
            },
            held: HeldBy { whole: 10, graph: 10, ..HeldBy::default() },
        }
    }
}

fn outcome(sites: &[KeptSite]) -> TestOutcome {
    let mut outcome = leaky();
    let report = outcome.report.as_mut().unwrap();
    let record = &mut report.record;
    let survivors = sites.iter().enumerate();
    let attribution = Attribution {
        stacks: sites.iter().map(KeptSite::stack).collect(),
        survivors: survivors.map(|(stack, site)| site.survivors(stack)).collect(),
        ..Attribution::default()
    };
    let rates = attribution.survivors.iter().map(|of| of.group.reading.bytes_per_iteration);
    let host = record.spaces.get_mut(&Space::Host).unwrap();
    host.metrics.growth = rates.sum();
    host.metrics.retained = 0;
    record.limits.max_growth.value = 0;
    record.attribution = Some(attribution);
    let verdict = judge(record, &Baseline::Off, &record.limits, |code| code.default_level(false));
    report.verdict = verdict.clone();
    TestOutcome { verdict, ..outcome }
}

/// The line that a form of output begins with, as it has it.
fn shown(outcome: &TestOutcome) -> Vec<(&'static str, String)> {
    let task = task();
    let report = every::reports_of(&task, outcome);
    let finding = &outcome.verdict.findings[0];
    let terminal = findings::lines(finding, Verbosity::Normal);
    let annotation = every::annotations().of_test(&task, outcome).remove(0).text;
    let sarif: Value = serde_json::from_str(&report("sarif")).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    let html = report("html");
    let (_, html) = html.split_once("<p class=\"place\">").unwrap();
    let (_, html) = html.split_once("<code>").unwrap();
    vec![
        ("terminal", terminal[1].trim().to_owned()),
        ("annotation", annotation.split(",title=").next().unwrap().to_owned()),
        ("sarif", format!("{} {}", place["artifactLocation"]["uri"], place["region"])),
        ("junit", after_summary(&report("junit"))),
        ("markdown", in_markdown(&report("markdown"))),
        ("html", html.split("</code>").next().unwrap().to_owned()),
        ("json", json::text(&finding.keeps_at)),
    ]
}

/// The line after the summary of the finding.
fn after_summary(report: &str) -> String {
    let mut lines = report.lines().skip_while(|line| !line.contains("leak: host grows by"));
    lines.nth(1).unwrap_or_else(|| panic!("no finding in\n{report}")).trim().to_owned()
}

/// The first line of a list, without the operation behind it.
fn in_markdown(report: &str) -> String {
    let mut lines = report.lines().filter_map(|line| line.strip_prefix("- allocated "));
    let line = lines.next().unwrap_or_else(|| panic!("{report}"));
    line.split('`').take(2).collect()
}

#[test]
fn the_readmes_example_begins_with_the_line_of_the_loss_in_every_form() {
    assert!(ReportKind::all().any(|kind| kind.name() == "sarif"));
    let outcome = outcome(&README);
    let Finding { code, cause, .. } = &outcome.verdict.findings[0];
    assert_eq!((*code, cause.as_ref().unwrap().code.as_str()), (Code::Leak, "graph-kept"));
    let line = "tests/mem.rs:11 (mem::training_step::body)";
    let function = "mem::training_step::body";
    assert_eq!(
        shown(&outcome),
        [
            ("terminal", format!("allocated at {line}")),
            ("annotation", "::error file=tests/mem.rs,line=11".to_owned()),
            ("sarif", r#""tests/mem.rs" {"startLine":11}"#.to_owned()),
            ("junit", format!("allocated at {line}")),
            ("markdown", "at tests/mem.rs:11".to_owned()),
            ("html", "tests/mem.rs:11".to_owned()),
            ("json", format!(r#"{{"file":"tests/mem.rs","line":11,"function":"{function}"}}"#)),
        ]
    );
}

#[test]
fn a_loss_of_several_lines_begins_with_the_line_that_keeps_it_in_every_form() {
    let outcome = outcome(&LAYERED);
    let line = "allocated in calls at tests/mem.rs:11 (mem::training_step::body)";
    let shown = shown(&outcome);
    for (form, text) in &shown {
        let expected = match *form {
            "annotation" => "::error file=tests/mem.rs,line=11",
            "sarif" => r#""tests/mem.rs" {"startLine":11}"#,
            "markdown" => "in calls at tests/mem.rs:11",
            "html" => "tests/mem.rs:11",
            "json" => r#"{"file":"tests/mem.rs","line":11,"function":"mem::training_step::body"}"#,
            _ => line,
        };
        assert_eq!(text, expected, "{form}");
    }
    let lines = findings::lines(&outcome.verdict.findings[0], Verbosity::Normal);
    assert!(lines[2].starts_with("  cause: "), "{lines:?}");
    assert_eq!(lines[5], "  allocated at tests/mem.rs:3 (mem::Layer::loss)");
}
