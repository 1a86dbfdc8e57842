//! The GPU of a test, and the figures of the driver's pool, NVML and CUPTI, which the program's own
//! calls do not include. Terminal, profile, Markdown and HTML share these lines, so that all of
//! them show the same figures and mark the same estimates.

use memcheck_core::measurement::driver::Untracked;
use memcheck_core::measurement::record::Record;
use memcheck_core::size::{self, both};

use crate::discovery::task::TestOutcome;

/// Marks the figures of a simulated device.
pub(super) const ESTIMATE: &str = "an estimate: the device is simulated";

pub(super) fn lines(outcome: &TestOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(outcome.gpu.as_ref().map(|gpu| format!("ran on {}", gpu.shown())));
    if let Some(report) = &outcome.report {
        lines.extend(of_record(&report.record));
    }
    lines
}

/// The memory of the whole process. The figures differ from run to run.
pub(super) fn process(outcome: &TestOutcome) -> Vec<String> {
    let memory = outcome.report.as_ref().and_then(|report| report.record.process.as_ref());
    memory.map(|memory| memory.lines()).unwrap_or_default()
}

fn of_record(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let mark = |text: String| match record.driver.simulated {
        true => format!("{text} ({ESTIMATE})"),
        false => text,
    };
    for (space, measured) in &record.spaces {
        let metrics = &measured.metrics;
        let mut figures = Vec::new();
        figures.extend(metrics.reserved.map(|bytes| format!("reserved {}", both(bytes))));
        figures.extend(metrics.peak_reserved.map(|bytes| format!("peak_reserved {}", both(bytes))));
        figures.extend(metrics.device_used.map(|bytes| format!("device_used {}", both(bytes))));
        if !figures.is_empty() {
            lines.push(mark(format!("driver and NVML of {space}: {}", figures.join(", "))));
        }
    }
    if let Some(unified) = &record.unified {
        lines.push(format!("one memory of {}, peak of {}", unified.card, unified.shown()));
    }
    for workspaces in &record.driver.workspaces {
        let text = format!("peak_allocated contains {}", workspaces.shown());
        lines.push(format!("{text} ({ESTIMATE})"));
    }
    if let Some(untracked) = &record.driver.untracked {
        lines.extend(self::untracked(untracked).into_iter().map(mark_first(mark)));
    }
    lines
}

fn mark_first(mark: impl Fn(String) -> String) -> impl FnMut(String) -> String {
    let mut first = true;
    move |line| if std::mem::take(&mut first) { mark(line) } else { line }
}

/// Device memory outside the pool, with its holders.
fn untracked(untracked: &Untracked) -> Vec<String> {
    let Untracked { space, bytes, items, rest, reason } = untracked;
    let all = bytes.map_or_else(|| "not known".to_owned(), both);
    let mut lines = vec![format!("beyond the pool of {space}: {all}")];
    let item = |item: &memcheck_core::measurement::driver::Item| {
        format!("  {}, {}: {}", item.holder, size::blocks(item.blocks), both(item.bytes))
    };
    lines.extend(items.iter().map(item));
    lines.extend(rest.map(|rest| format!("  context, code and driver: {}", both(rest))));
    lines.extend(reason.as_ref().map(|reason| format!("  not itemized: {reason}")));
    lines
}

#[cfg(test)]
mod tests {
    use memcheck_core::measurement::driver::{Gpu, Item, Workspaces};
    use memcheck_core::space::Space;

    use super::super::example::leaky;
    use super::super::exports::html::{Html, readable};
    use super::super::exports::markdown::Markdown;
    use super::super::json::JsonLines;
    use super::super::junit::Junit;
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::events::ReportWriter;
    use crate::system::gpus::RanOn;

    pub(in crate::presentation::presenters) fn on_a_gpu(simulated: bool) -> TestOutcome {
        let mut outcome = leaky();
        let record = &mut outcome.report.as_mut().unwrap().record;
        let gpu = Space::Cuda(0);
        let mut measured = record.spaces[&Space::Host].clone();
        measured.metrics.reserved = Some(32 << 20);
        measured.metrics.peak_reserved = Some(64 << 20);
        measured.metrics.device_used = Some(576 << 20);
        record.spaces.insert(gpu, measured);
        record.judged = vec![gpu];
        record.driver.simulated = simulated;
        record.driver.untracked = Some(Untracked {
            space: gpu,
            bytes: Some(544 << 20),
            items: vec![Item { holder: "libcublas.so.13".into(), bytes: 32 << 20, blocks: 1 }],
            rest: Some(512 << 20),
            reason: None,
        });
        outcome
    }

    fn text(mut report: impl ReportWriter, outcome: &TestOutcome) -> String {
        report.test_finished(&task(), outcome);
        String::from_utf8(report.text().unwrap()).unwrap()
    }

    #[test]
    fn memory_outside_the_pool_is_listed_by_its_owner() {
        let mut outcome = on_a_gpu(false);
        let found = Gpu { name: "NVIDIA H200".to_owned(), uuid: Some("GPU-2".to_owned()) };
        let record = &mut outcome.report.as_mut().unwrap().record;
        record.driver.gpu = Some(found);
        outcome.gpu = RanOn::of(None, outcome.report.as_ref().map(|report| &report.record));
        assert_eq!(
            lines(&outcome),
            [
                "ran on NVIDIA H200 (GPU-2)",
                "driver and NVML of cuda:0: reserved 33,554,432 B (32.0 MiB), peak_reserved \
                 67,108,864 B (64.0 MiB), device_used 603,979,776 B (576.0 MiB)",
                "beyond the pool of cuda:0: 570,425,344 B (544.0 MiB)",
                "  libcublas.so.13, 1 block: 33,554,432 B (32.0 MiB)",
                "  context, code and driver: 536,870,912 B (512.0 MiB)",
            ]
        );
        let record = &mut outcome.report.as_mut().unwrap().record;
        let untracked = record.driver.untracked.as_mut().unwrap();
        untracked.reason = Some("libcupti.so was not found".to_owned());
        let last = lines(&outcome).pop().unwrap();
        assert_eq!(last, "  not itemized: libcupti.so was not found");
    }

    #[test]
    fn every_report_names_the_gpu() {
        let mut outcome = on_a_gpu(false);
        let name = "NVIDIA H200".to_owned();
        outcome.gpu = Some(RanOn { index: Some(1), name, uuid: Some("GPU-2".to_owned()) });
        let figures = "cuda:1, NVIDIA H200 (GPU-2)";
        assert_eq!(lines(&outcome)[0], format!("ran on {figures}"));
        for report in [
            text(Markdown::default(), &outcome),
            readable(&text(Html::default(), &outcome)),
            text(Junit::default(), &outcome),
        ] {
            assert!(report.contains(figures), "{report}");
        }
        let json = text(JsonLines::new(Vec::new()), &outcome);
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!({"index": 1, "name": "NVIDIA H200", "uuid": "GPU-2"});
        assert_eq!(line["gpu"], expected);
        // The GPU is also shown for a test that left no report.
        let dead = TestOutcome { report: None, ..outcome };
        assert_eq!(lines(&dead), [format!("ran on {figures}")]);
    }

    #[test]
    fn every_output_marks_the_estimates_of_a_simulated_device_only() {
        for simulated in [true, false] {
            let outcome = on_a_gpu(simulated);
            let marked = |text: &str, what: &str| {
                assert!(text.contains("device_used"), "{what} says nothing of it:\n{text}");
                assert_eq!(text.contains("estimate"), simulated, "{what}:\n{text}");
            };
            marked(&lines(&outcome).join("\n"), "terminal and profile");
            marked(&text(Markdown::default(), &outcome), "markdown");
            marked(&readable(&text(Html::default(), &outcome)), "html");
            let json = text(JsonLines::new(Vec::new()), &outcome);
            marked(&json, "json");
            let line: serde_json::Value = serde_json::from_str(&json).unwrap();
            let named = ["reserved", "peak_reserved", "device_used"];
            let expected =
                if simulated { serde_json::json!(named) } else { serde_json::Value::Null };
            assert_eq!(line["estimates"], expected);
            let junit = text(Junit::default(), &outcome);
            marked(&junit, "junit");
            for name in named {
                let property =
                    format!("<property name=\"cuda:0.{name}.estimate\" value=\"true\"/>");
                assert_eq!(junit.contains(&property), simulated, "{name}: {junit}");
            }
            assert!(!junit.contains("peak_allocated.estimate"), "{junit}");
        }
    }

    #[test]
    fn every_output_marks_the_peak_that_contains_estimated_workspaces() {
        let mut outcome = on_a_gpu(true);
        let record = &mut outcome.report.as_mut().unwrap().record;
        let of =
            |library: &str, count| Workspaces { library: library.into(), count, largest: 2048 };
        record.driver.workspaces = vec![of("cuDNN", 12), of("cuBLASLt", 3)];
        let line = |library: &str, count| {
            let largest = "the largest of 2,048 B (2.00 KiB)";
            format!(
                "peak_allocated contains workspaces of {library}: {count}, {largest} ({ESTIMATE})"
            )
        };
        let html = readable(&text(Html::default(), &outcome));
        for text in [lines(&outcome).join("\n"), text(Markdown::default(), &outcome), html] {
            assert!(text.contains(&line("cuDNN", 12)), "{text}");
            assert!(text.contains(&line("cuBLASLt", 3)), "{text}");
        }
        let json = text(JsonLines::new(Vec::new()), &outcome);
        assert!(json.contains("\"device_used\",\"peak_allocated\",\"allocated_total\"]"), "{json}");
        let junit = text(Junit::default(), &outcome);
        assert!(junit.contains("cuda:0.peak_allocated.estimate"), "{junit}");
    }
}
