//! The figures of the judged spaces in Bencher's metric format (BMF): a benchmark for each test and
//! device, a measure for each figure.

use std::collections::BTreeMap;

use memcheck_core::judgement::baseline::Figures;
use memcheck_core::measurement::repeats::Repeats;
use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::{json, summary};
use crate::presentation::tally::Tally;
use crate::system::escape;

/// Bencher refuses a longer name of a benchmark.
const LONGEST: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Metric {
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Bencher {
    benchmarks: BTreeMap<String, BTreeMap<String, Metric>>,
    cut_short: Vec<String>,
}

impl Presenter for Bencher {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let Some(report) = &outcome.report else { return };
        let mut measures = BTreeMap::new();
        for (space, by_name) in Figures::measured(&report.record).0 {
            for (figure, value) in by_name {
                let metric = Metric { value, lower_value: None, upper_value: None };
                measures.insert(format!("{space} {figure}"), metric);
            }
        }
        let repeats = report.record.repeats.iter();
        for range in repeats.flat_map(Repeats::ranges) {
            if let Some(metric) = measures.get_mut(&format!("{} {}", range.space, range.metric)) {
                metric.lower_value = Some(range.least);
                metric.upper_value = Some(range.greatest);
            }
        }
        let name = format!("{} {} ({})", task.binary.id, task.name(), task.leg.name());
        let name: String = escape::line(&name).chars().take(LONGEST).collect();
        self.benchmarks.insert(name, measures);
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

impl ReportWriter for Bencher {
    /// The format has no place for an error. Text that is not JSON makes Bencher refuse the file of
    /// an incomplete run.
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        if self.cut_short.is_empty() {
            return Ok((json::text(&self.benchmarks) + "\n").into_bytes());
        }
        let lines: Vec<String> = self.cut_short.iter().map(|line| escape::line(line)).collect();
        Ok((lines.join("\n") + "\n").into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn each_figure_is_a_measure_of_its_test() {
        let mut bencher = Bencher::default();
        bencher.test_finished(&task(), &leaky());
        bencher.test_finished(&task(), &TestOutcome::ignored());
        let text = bencher.text().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let benchmarks = value.as_object().unwrap();
        assert_eq!(benchmarks.len(), 1);
        for (name, measures) in benchmarks {
            assert!(name.contains(task().name()), "{name}");
            assert_eq!(measures["host peak_allocated"]["value"], 26 << 20);
            for (measure, metric) in measures.as_object().unwrap() {
                // The format: an object with numbers, of which `value` is required.
                assert!(measure.len() <= 64 && metric["value"].is_number(), "{measure}");
                let known = ["value", "lower_value", "upper_value"];
                assert!(metric.as_object().unwrap().keys().all(|key| known.contains(&&**key)));
            }
        }
    }

    #[test]
    fn the_file_of_an_incomplete_run_is_not_accepted() {
        let mut bencher = Bencher::default();
        bencher.finished(&Tally { interrupted: true, ..Tally::default() }, 130);
        let text = bencher.text().unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&text).is_err());
        assert!(String::from_utf8(text).unwrap().contains("interrupted"));
    }
}
