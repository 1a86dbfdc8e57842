//! The figures of the judged spaces as CSV: one row for each figure.

use memcheck_core::judgement::baseline::Figures;

use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::summary;
use crate::presentation::tally::Tally;
use crate::system::escape::{self, Form, escape};

const COLUMNS: [&str; 8] =
    ["package", "binary", "test", "device", "status", "space", "figure", "value"];

#[derive(Debug, Default)]
pub(crate) struct Csv {
    rows: Vec<[String; 8]>,
    cut_short: Vec<String>,
}

impl Presenter for Csv {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let status = outcome.verdict.status.name().to_owned();
        let mut row = |space: String, figure: String, value: String| {
            let name = |text: &str| escape::line(text);
            let id = [&task.package, &task.binary.id, task.name(), &task.leg.name()].map(name);
            let [package, binary, test, device] = id;
            let status = status.clone();
            self.rows.push([package, binary, test, device, status, space, figure, value]);
        };
        let figures = outcome.report.as_ref().map(|report| Figures::measured(&report.record));
        let Some(Figures(spaces)) = figures else {
            return row(String::new(), String::new(), String::new());
        };
        for (space, by_name) in spaces {
            for (figure, value) in by_name {
                row(space.to_string(), figure, value.to_string());
            }
        }
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.cut_short = summary::cut_short(tally);
    }
}

impl ReportWriter for Csv {
    /// A line that is not a row follows if the rows are incomplete.
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        let mut text = String::from_utf8(writer.into_inner().map_err(|it| it.into_error())?)?;
        for line in &self.cut_short {
            text.push_str(&format!("# {}\n", escape::line(line)));
        }
        Ok(escape(text, Form::Text).into_owned().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn every_figure_is_a_row_that_a_reader_of_csv_returns() {
        let mut csv = Csv::default();
        let mut task = task();
        task.package = "a,\"b\"".to_owned();
        csv.test_finished(&task, &leaky());
        csv.test_finished(&task, &TestOutcome::ignored());
        csv.finished(&Tally::default(), 0);
        let text = csv.text().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_slice());
        assert_eq!(reader.headers().unwrap(), &csv::StringRecord::from(COLUMNS.to_vec()));
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let peak = rows.iter().find(|row| &row[6] == "peak_allocated").unwrap();
        assert_eq!((&peak[0], &peak[5], &peak[7]), ("a,\"b\"", "host", "27262976"));
        assert!(rows.iter().any(|row| &row[6] == "growth"));
        let ignored = rows.last().unwrap();
        assert_eq!((&ignored[4], &ignored[5], &ignored[7]), ("ignored", "", ""));
    }

    #[test]
    fn growth_that_was_not_measured_is_no_row() {
        let mut outcome = leaky();
        let record = &mut outcome.report.as_mut().unwrap().record;
        record.iterated = false;
        record.spaces.values_mut().for_each(|measured| measured.metrics.growth = 0);
        let mut csv = Csv::default();
        csv.test_finished(&task(), &outcome);
        let text = String::from_utf8(csv.text().unwrap()).unwrap();
        assert!(text.contains("peak_allocated") && !text.contains("growth"), "{text}");
    }

    #[test]
    fn a_run_that_was_cut_short_is_not_a_table() {
        let mut csv = Csv::default();
        csv.finished(&Tally { interrupted: true, ..Tally::default() }, 130);
        let text = csv.text().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_slice());
        assert!(reader.records().any(|row| row.is_err()), "a reader must refuse it");
    }
}
