//! Tests that end in each way.

use console::strip_ansi_codes;
use memcheck_core::input;
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::verdict::judge;
use memcheck_core::space::Space;

use super::super::every;
use super::{data, line, results, stream, test, text, workspace};
use crate::invocation::values::{ExportKind, ReportKind};
use crate::system::printing::lines_for_people;

/// A test, its status and code, and a part of its message.
const ENDINGS: [(&str, &str, &str, &str); 6] = [
    ("gradients_are_kept", "failed", "leak", "host grows by "),
    ("one_block_over_the_peak", "failed", "peak-limit", "1,048,580 B"),
    ("an_error", "failed", "test-failed", "an error on purpose"),
    ("an_abort", "failed", "crashed", "SIGABRT"),
    ("an_exit", "not-measured", "not-measured", ""),
    ("a_hang", "failed", "timed-out", "1s"),
];

#[test]
fn each_ending_has_its_status_its_code_and_its_message_in_every_report() {
    let (junit, markdown) = (
        text(ReportKind::Junit, "endings"),
        text(ReportKind::Export(ExportKind::Markdown), "endings"),
    );
    for (name, status, code, part) in ENDINGS {
        let finished = line("endings", name);
        assert_eq!(
            (&finished["status"], &finished["findings"][0]["code"]),
            (&status.into(), &code.into()),
            "{name}"
        );
        let message = finished["findings"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{name}: {message}");
        let (task, outcome) = test("endings", name);
        let shown = lines_for_people(&every::terminal().result(&task, &outcome));
        let shown = strip_ansi_codes(&shown);
        assert!(shown.contains(&format!("{code}: ")), "{name}: {shown}");
        let annotations = every::annotations().of_test(&task, &outcome);
        assert!(
            annotations.iter().any(|it| it.text.starts_with("::error ") && it.text.contains(code)),
            "{name}"
        );
        assert_eq!(data("endings", name)["findings"][0]["code"], code);
        for (kind, report) in [("junit", &junit), ("markdown", &markdown)] {
            assert!(report.contains(name) && report.contains(code), "{name} in {kind}: {report}");
        }
    }
    assert_eq!(results("endings").tests.len(), ENDINGS.len());
}

/// A peak of one byte above the committed baseline.
#[test]
fn a_higher_peak_is_a_regression_with_its_bytes_and_its_holders() {
    let (task, mut outcome) = test("bert", "bert::forward");
    let report = outcome.report.as_mut().unwrap();
    let peak = report.record.spaces[&Space::Cuda(0)].metrics.peak_allocated;
    let file =
        workspace().join("tests/tests/workloads/snapshots/workloads__bert__forward@cuda.snap");
    let baseline = input::read_text(&file, input::SNAPSHOT).unwrap();
    let mut judged = |then: u64| {
        let (now, then) =
            (format!("peak_allocated: {peak}\n"), format!("peak_allocated: {then}\n"));
        assert!(baseline.contains(&now), "{baseline}");
        let baseline = Baseline::from_text(&baseline.replace(&now, &then));
        let record = &report.record;
        report.verdict = judge(record, &baseline, &record.limits, |code| code.default_level(false));
        report.verdict.clone()
    };
    assert_eq!(judged(peak).findings, []);
    outcome.verdict = judged(peak - 1);
    let [finding] = &outcome.verdict.findings[..] else { panic!("{:?}", outcome.verdict) };
    assert_eq!(
        (finding.code, finding.figure, finding.baseline),
        (Code::PeakRegression, Some(peak), Some(peak - 1))
    );
    let shown = lines_for_people(&every::terminal().result(&task, &outcome));
    let shown = strip_ansi_codes(&shown);
    for part in [
        "FAIL",
        "peak-regression: `peak_allocated` of cuda:0 was 862,815 B (842.6 KiB), is 862,816 B (842.6 KiB) (+1 B)",
        "softmax [2,4,32,32] f32 in model.encoder.layer.attn.self-attn.softmax",
    ] {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}

#[test]
fn the_summary_counts_the_endings() {
    let summary = |recording| stream(recording).pop().unwrap();
    let endings = summary("endings");
    assert_eq!((&endings["failed"], &endings["not_measured"]), (&5.into(), &1.into()), "{endings}");
    assert_eq!((&endings["passed"], &endings["exit_code"]), (&0.into(), &100.into()), "{endings}");
    let cpu = summary("cpu");
    let counts = ["passed", "failed", "ignored"].map(|name| cpu[name].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 1], "{cpu}");
    assert_eq!(summary("sim")["exit_code"], 0);
}
