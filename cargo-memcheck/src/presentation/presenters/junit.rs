//! A JUnit XML report with one suite for each executable and device.

use std::collections::BTreeMap;

use memcheck_core::judgement::finding::Level;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::driver::ESTIMATES;
use memcheck_core::measurement::repeats::Repeats;
use quick_junit::{NonSuccessKind, Report as Xml, TestCase, TestCaseStatus, TestSuite};

use super::findings;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::values::Verbosity;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::system::escape::{Form, escape};

#[derive(Debug, Default)]
pub(crate) struct Junit {
    suites: BTreeMap<String, Vec<TestCase>>,
}

impl Presenter for Junit {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let verdict = &outcome.verdict;
        let status = match verdict.status {
            Status::Passed => TestCaseStatus::success(),
            Status::Ignored => TestCaseStatus::skipped(),
            Status::Failed | Status::NeedsReview | Status::NotMeasured => {
                let kind = match verdict.status {
                    Status::NotMeasured => NonSuccessKind::Error,
                    _ => NonSuccessKind::Failure,
                };
                let mut status = TestCaseStatus::non_success(kind);
                if let Some(first) = verdict.findings.first() {
                    status.set_type(first.code.name()).set_message(&first.message);
                }
                let text: Vec<String> = verdict
                    .findings
                    .iter()
                    .flat_map(|f| findings::lines(f, Verbosity::Verbose))
                    .collect();
                status.set_description(text.join("\n"));
                status
            }
        };
        let failing = !matches!(verdict.status, Status::Passed | Status::Ignored);
        let mut case = TestCase::new(task.name(), status);
        case.set_classname(task.binary.id.as_str()).set_time(outcome.duration);
        if let Some(report) = &outcome.report {
            for (space, measured) in &report.record.spaces {
                let figures = serde_json::to_value(measured.metrics).unwrap_or_default();
                for (name, value) in figures.as_object().into_iter().flatten() {
                    case.add_property((format!("{space}.{name}"), value.to_string()));
                    if report.record.driver.simulated && ESTIMATES.contains(&name.as_str()) {
                        case.add_property((format!("{space}.{name}.estimate"), "true".to_owned()));
                    }
                }
            }
        }
        let repeats = outcome.report.as_ref().and_then(|report| report.record.repeats.as_ref());
        for range in repeats.into_iter().flat_map(Repeats::ranges) {
            let name = format!("{}.{}.range", range.space, range.metric);
            case.add_property((name, format!("{}..{}", range.least, range.greatest)));
        }
        if let Some(gpu) = &outcome.gpu {
            case.add_property(("gpu".to_owned(), gpu.shown()));
        }
        for report in &outcome.across.laws {
            let name = format!("{}.{}.law", report.space, report.metric.name());
            case.add_property((name, report.law.to_string()));
        }
        if failing {
            case.set_system_out(outcome.output.stdout.as_str());
            case.set_system_err(outcome.output.stderr.as_str());
        }
        let suite = format!("{} ({})", task.binary.id, task.leg.name());
        self.suites.entry(suite).or_default().push(case);
    }

    fn note(&mut self, note: &Note) {
        if note.level == Level::Deny {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(note.finding.code.name()).set_message(&note.finding.message);
            let name = format!("{}: {}", note.finding.code, note.finding.message);
            let case = TestCase::new(name, status);
            self.suites.entry(format!("{} (bookkeeping)", note.package)).or_default().push(case);
        }
    }
}

impl ReportWriter for Junit {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut xml = Xml::new("memcheck");
        for (name, cases) in &self.suites {
            let mut suite = TestSuite::new(name.as_str());
            suite.add_test_cases(cases.iter().cloned());
            xml.add_test_suite(suite);
        }
        Ok(escape(&xml.to_string()?, Form::Markup).into_bytes())
    }
}
