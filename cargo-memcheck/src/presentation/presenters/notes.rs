//! The notes about a test, in the words of every form of output. They do not change its status.

use memcheck_core::judgement::finding;
use memcheck_core::measurement::record::Record;
use memcheck_core::measurement::unknown_reads::UnknownReads;
use memcheck_core::presentation::text;

use crate::discovery::task::TestOutcome;

/// The notes about a test, without those that a finding already contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestNotes {
    /// Those that question a pass, such as a part of the memory that was not counted, and the results of
    /// a soak or a fault sweep.
    pub(super) shown: Vec<String>,
    /// Those that only explain figures.
    pub(super) remarks: Vec<String>,
}

impl TestNotes {
    pub(super) fn of(outcome: &TestOutcome) -> Self {
        let Some(report) = &outcome.report else { return Self::default() };
        let record = &report.record;
        let findings = &outcome.verdict.findings;
        let is_in_a_hint = |note: &&String| {
            let hints = findings.iter().filter_map(|finding| finding.hint.as_ref());
            hints.into_iter().any(|hint| hint.contains(*note))
        };
        let own = |notes: &[String]| -> Vec<String> {
            notes.iter().filter(|note| !is_in_a_hint(note)).cloned().collect()
        };
        let (mut shown, mut remarks) = (own(&record.notes), own(&record.remarks));
        let repeats = record.repeats.as_ref();
        shown.extend(repeats.and_then(|repeats| repeats.note(&finding::reported(findings))));
        let reads = unknown_reads(outcome);
        shown.extend(reads.and_then(|reads| text::unknown_reads_note(reads, findings)));
        // What a user has asked for is not hidden.
        shown.extend(record.fault_sweep_note());
        shown.extend(soaked(record));
        remarks.extend(record.files_held_twice());
        Self { shown, remarks }
    }

    pub(super) fn all(self) -> Vec<String> {
        [self.shown, self.remarks].concat()
    }
}

/// All notes about a test.
pub(super) fn of(outcome: &TestOutcome) -> Vec<String> {
    TestNotes::of(outcome).all()
}

/// The reads of unknown values of the simulated device.
pub(super) fn unknown_reads(outcome: &TestOutcome) -> Option<&UnknownReads> {
    outcome.report.as_ref()?.record.values.as_ref()
}

/// `None` for a soak that ended early, because that is a finding.
fn soaked(record: &Record) -> Option<String> {
    let soaked = record.soaked.as_ref()?;
    let is_reported = soaked.has_begun() && soaked.ended.is_some();
    (!is_reported).then(|| format!("soak: {}", soaked.sentence()))
}

#[cfg(test)]
mod tests {
    use memcheck_core::measurement::repeats;
    use memcheck_core::size::both;
    use memcheck_core::space::Space;

    use super::super::example::leaky;
    use super::super::exports::html::{Html, readable};
    use super::super::exports::markdown::Markdown;
    use super::super::json::JsonLines;
    use super::super::junit::Junit;
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::events::{Presenter, ReportWriter};
    use crate::presentation::tally::Tally;

    fn text(mut report: impl ReportWriter, outcome: &TestOutcome) -> String {
        report.test_finished(&task(), outcome);
        String::from_utf8(report.text().unwrap()).unwrap()
    }

    #[test]
    fn a_note_of_the_record_is_in_every_report_unless_a_hint_contains_it() {
        let mut outcome = leaky();
        let note = "one iteration cannot show growth: at least two are needed";
        outcome.report.as_mut().unwrap().record.remarks = vec![note.to_owned()];
        assert_eq!(of(&outcome), [note]);
        for report in
            [text(Markdown::default(), &outcome), readable(&text(Html::default(), &outcome))]
        {
            assert!(report.contains(note), "{report}");
        }
        outcome.verdict.findings[0].hint = Some(format!("first; {note}"));
        assert_eq!(of(&outcome), [""; 0]);
    }

    #[test]
    fn only_remarks_are_hidden() {
        let mut outcome = leaky();
        let record = &mut outcome.report.as_mut().unwrap().record;
        record.notes = vec!["your own kernels were not computed".to_owned()];
        record.remarks = vec!["kept once".to_owned()];
        let TestNotes { shown, remarks } = TestNotes::of(&outcome);
        assert_eq!((shown.len(), remarks), (1, vec!["kept once".to_owned()]));
        assert_eq!(of(&outcome).len(), 2);
    }

    #[test]
    fn every_report_has_the_range_of_a_figure_that_differs_between_runs() {
        let mut outcome = leaky();
        let record = &mut outcome.report.as_mut().unwrap().record;
        let mut other = record.clone();
        other.spaces.get_mut(&Space::Host).unwrap().metrics.setup = 7 << 20;
        let runs = [&*record, &other].map(memcheck_core::measurement::comparison::figures).to_vec();
        record.repeats = Some(repeats::Repeats { asked: Some(2), runs });
        let setup = record.spaces[&Space::Host].metrics.setup;
        let figures = format!("is {} to 7,340,032 B (7.00 MiB) in 2 runs", both(setup));
        assert!(of(&outcome)[0].contains(&figures));
        for report in
            [text(Markdown::default(), &outcome), readable(&text(Html::default(), &outcome))]
        {
            assert!(report.contains(&figures), "{report}");
        }
        let junit = text(Junit::default(), &outcome);
        let property = format!("name=\"host.setup.range\" value=\"{setup}..7340032\"");
        assert!(junit.contains(&property), "{junit}");

        let mut lines = JsonLines::new(Vec::new());
        lines.test_finished(&task(), &outcome);
        let mut tally = Tally::default();
        tally.add(&outcome);
        lines.finished(&tally, 100);
        let json = String::from_utf8(lines.text().unwrap()).unwrap();
        let (test, summary) = json.trim_end().split_once('\n').unwrap();
        let test: serde_json::Value = serde_json::from_str(test).unwrap();
        let expected = serde_json::json!({"runs": 2, "figures": [{
            "space": "host", "metric": "setup", "least": setup, "greatest": 7 << 20,
            "values": [setup, 7 << 20],
        }]});
        assert_eq!(test["repeat"], expected);
        let repeat = r#""repeat":{"runs":2,"tests":1,"identical":0}"#;
        assert!(summary.contains(repeat), "{summary}");
    }
}
