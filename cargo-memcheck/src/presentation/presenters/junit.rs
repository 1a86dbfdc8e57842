//! A JUnit XML report with one suite for each executable and device.

use std::collections::BTreeMap;

use memcheck_core::judgement::finding::Level;
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::repeats::Repeats;
use quick_junit::{NonSuccessKind, Report as Xml, TestCase, TestCaseStatus, TestSuite};

use super::{findings, next_step, notes, summary};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::options::baselines_flag;
use crate::invocation::values::Verbosity;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::origin::RunOrigin;
use crate::presentation::tally::Tally;
use crate::system::escape::{Form, escape};

#[derive(Debug, Default)]
pub(crate) struct Junit {
    suites: BTreeMap<String, Vec<TestCase>>,
    run: Option<RunOrigin>,
    /// The flag of the folder of the baselines.
    baselines_flag: Vec<String>,
}

impl Junit {
    pub(crate) fn new(roots: Roots<'_>) -> Self {
        Self { baselines_flag: baselines_flag(roots), ..Self::default() }
    }
}

impl Presenter for Junit {
    fn run_started(&mut self, run: &RunOrigin) {
        self.run = Some(run.clone());
    }

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
                if let Some(first) = findings::folded(&verdict.findings).first() {
                    let first = first.finding;
                    status.set_type(first.code.name()).set_message(&first.message);
                }
                let mut text = findings::all_lines(&verdict.findings, Verbosity::Verbose);
                text.extend(next_step::lines(task, outcome, &self.baselines_flag));
                status.set_description(text.join("\n"));
                status
            }
        };
        let failing = !matches!(verdict.status, Status::Passed | Status::Ignored);
        let mut case = TestCase::new(task.name(), status);
        case.set_classname(&task.binary.id).set_time(outcome.duration);
        if let Some(report) = &outcome.report {
            let estimates = report.record.driver.estimates();
            let is_measured = |name: &str| name != "growth" || report.record.measures_growth();
            for (space, measured) in &report.record.spaces {
                let figures = serde_json::to_value(measured.metrics).unwrap_or_default();
                let figures = figures.as_object().into_iter().flatten();
                for (name, value) in figures.filter(|(name, _)| is_measured(name)) {
                    case.add_property((format!("{space}.{name}"), value.to_string()));
                    if estimates.contains(&name.as_str()) {
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
        if let Some(values) = notes::unknown_reads(outcome) {
            case.add_property(("unknown_reads".to_owned(), values.reads.to_string()));
            if values.further > 0 {
                let further = values.further.to_string();
                case.add_property(("further_unknown_reads".to_owned(), further));
            }
            for line in values.lines() {
                case.add_property(("unknown_reads.at".to_owned(), line.to_owned()));
            }
        }
        if let Some(sweep) = outcome.report.as_ref().and_then(|it| it.record.fault_sweep.as_ref()) {
            case.add_property(("fault_sweep.refused".to_owned(), sweep.refused.to_string()));
        }
        if let Some(gpu) = &outcome.gpu {
            case.add_property(("gpu".to_owned(), gpu.shown()));
        }
        for report in &outcome.across.laws {
            let name = format!("{}.{}.law", report.space, report.metric.name());
            case.add_property((name, report.law.to_string()));
        }
        if failing {
            case.set_system_out(&outcome.output.stdout);
            case.set_system_err(&outcome.output.stderr);
        }
        let suite = format!("{} ({})", task.binary.id, task.leg.name());
        self.suites.entry(suite).or_default().push(case);
    }

    fn note(&mut self, note: &Note) {
        if note.level == Level::Deny {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(note.finding.code.name()).set_message(&note.finding.message);
            let name = format!("{}: {}", note.finding.code, note.finding.message);
            let case = TestCase::new(&name, status);
            self.suites.entry(format!("{} (bookkeeping)", note.package)).or_default().push(case);
        }
    }

    /// A run that was cut short has a case for that, because a report without failures would look
    /// like success.
    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        let lines = summary::cut_short(tally);
        let Some(first) = lines.first() else { return };
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("incomplete-run").set_message(first);
        status.set_description(lines.join("\n"));
        self.suites.entry("run".to_owned()).or_default().push(TestCase::new("run", status));
    }
}

impl ReportWriter for Junit {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut xml = Xml::new("memcheck");
        for (name, cases) in &self.suites {
            let mut suite = TestSuite::new(name);
            suite.add_test_cases(cases.iter().cloned());
            for (name, value) in self.run.iter().flat_map(RunOrigin::properties) {
                suite.add_property((format!("run.{name}"), value));
            }
            xml.add_test_suite(suite);
        }
        Ok(escape(xml.to_string()?, Form::Markup).into_owned().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::super::example::leaky;
    use super::super::exports::flamegraph::FlameGraph;
    use super::*;
    use crate::discovery::task::TestSubject;
    use crate::discovery::task::example::task;

    /// Every text of a test that reaches a report.
    fn hostile(text: &str) -> (Task, TestOutcome) {
        let (mut task, mut outcome) = (task(), leaky());
        task.binary.id = text.to_owned();
        if let TestSubject::Test(entry) = &mut task.subject {
            entry.name = text.to_owned();
        }
        (outcome.output.stdout, outcome.output.stderr) = (text.to_owned(), text.to_owned());
        for finding in &mut outcome.verdict.findings {
            text.clone_into(&mut finding.message);
        }
        let attribution = outcome.report.as_mut().unwrap().record.attribution.as_mut().unwrap();
        for place in &mut attribution.places {
            (place.scope, place.operation) = (text.to_owned(), Some(text.to_owned()));
        }
        (task, outcome)
    }

    fn junit((task, outcome): &(Task, TestOutcome)) -> String {
        let mut junit = Junit::default();
        junit.test_finished(task, outcome);
        String::from_utf8(junit.text().unwrap()).unwrap()
    }

    fn flame_graph((task, outcome): &(Task, TestOutcome)) -> String {
        let mut graph = FlameGraph::default();
        graph.test_finished(task, outcome);
        String::from_utf8(graph.text().unwrap()).unwrap()
    }

    #[test]
    fn a_report_is_well_formed_for_every_character() {
        let all: Vec<char> = ('\0'..=char::MAX).collect();
        for some in all.chunks(0x8000) {
            let mut test = hostile("name");
            test.1.output.stdout = some.iter().flat_map(|c| [*c, ')']).collect();
            let (xml, first) = (junit(&test), u32::from(some[0]));
            let document =
                Document::parse(&xml).unwrap_or_else(|error| panic!("{first:x}: {error}"));
            let output = document.descendants().find(|node| node.has_tag_name("system-out"));
            let shown = output.unwrap().text().unwrap().matches(')').count();
            // quick-junit removes escape sequences, and some last for several characters.
            assert!(shown >= some.len() - 32, "{first:x}: {shown} characters");
        }
    }

    #[test]
    fn every_text_of_a_report_can_contain_every_control_character() {
        let controls = ('\0'..'\u{a0}').chain(['\u{fffd}', '\u{fffe}', '\u{ffff}']);
        let texts = controls.map(|c| format!("a{c}]]>&<\u{1b}[{c}"));
        for text in texts.chain(["\u{1b}]0;title".to_owned(), "\u{1b}".to_owned(), String::new()]) {
            let test = hostile(&text);
            let xml = junit(&test);
            Document::parse(&xml).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            let (svg, allow_dtd) = (flame_graph(&test), true);
            let options = roxmltree::ParsingOptions { allow_dtd, ..Default::default() };
            Document::parse_with_options(&svg, options)
                .unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
    }

    #[test]
    fn a_reader_of_junit_returns_the_cases_the_finding_and_the_figures() {
        let mut junit = Junit::default();
        junit.test_finished(&task(), &leaky());
        junit.test_finished(&task(), &TestOutcome::ignored());
        let text = String::from_utf8(junit.text().unwrap()).unwrap();
        let read = Xml::deserialize_from_str(&text).unwrap();
        assert_eq!((read.tests, read.failures, read.errors), (2, 1, 0));
        let [suite] = read.test_suites.as_slice() else { panic!("{read:?}") };
        let [leaky, ignored] = suite.test_cases.as_slice() else { panic!("{suite:?}") };
        assert!(matches!(ignored.status, TestCaseStatus::Skipped { .. }), "{ignored:?}");
        let TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, ty, description, .. } =
            &leaky.status
        else {
            panic!("{leaky:?}");
        };
        assert_eq!(ty.as_ref().map(|name| name.as_str()), Some("leak"));
        let description = description.as_ref().expect("a description").as_str();
        assert!(description.contains("src/model.rs:20"), "{description}");
        let of = |name: &str| leaky.properties.iter().find(|it| it.name.as_str() == name);
        let peak = of("host.peak_allocated").expect("the peak");
        assert_eq!(peak.value.as_str(), (26 << 20).to_string());
    }

    #[test]
    fn a_run_that_was_cut_short_has_a_case_with_the_reason() {
        let mut junit = Junit::default();
        junit.finished(&Tally { interrupted: true, ..Tally::default() }, 130);
        let text = String::from_utf8(junit.text().unwrap()).unwrap();
        let document = Document::parse(&text).unwrap();
        let error = document.descendants().find(|node| node.has_tag_name("error")).unwrap();
        assert_eq!(error.attribute("type"), Some("incomplete-run"));
        assert_eq!(error.attribute("message"), Some("interrupted: the counts are incomplete"));
    }
}
