//! A Markdown report, for example for a pull request: the failures first, then a table.

pub(in crate::presentation::presenters) mod inline;

use std::fmt::Write;

use memcheck_core::judgement::verdict::Status;
use memcheck_core::size::{Size, exact};

use inline::{code, fenced, message};

use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::values::Verbosity;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::{driver_lines, findings, notes, summary};
use crate::presentation::tally::Tally;
use crate::system::escape::{self, Form, escape};

#[derive(Debug, Default)]
pub(crate) struct Markdown {
    findings: String,
    rows: String,
    driver: String,
    laws: String,
    notes: String,
    counts: String,
}

impl Presenter for Markdown {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let verdict = &outcome.verdict;
        let status = match verdict.status {
            Status::Passed => "passed",
            Status::NeedsReview => "**to review**",
            Status::Failed => "**failed**",
            Status::NotMeasured => "**not measured**",
            Status::Ignored => "ignored",
        };
        let test = format!("{} {}", code(&task.binary.id), code(task.name()));
        let leg = message(&task.leg.name());
        let record = outcome.report.as_ref().map(|report| &report.record);
        let judged: Vec<_> = record
            .into_iter()
            .flat_map(|record| record.judged.iter().filter_map(|s| record.spaces.get_key_value(s)))
            .collect();
        if judged.is_empty() {
            let _ = writeln!(self.rows, "| {test} | {leg} | {status} | | | |");
        }
        for (space, measured) in judged {
            let metrics = &measured.metrics;
            let _ = writeln!(
                self.rows,
                "| {test} | {leg} {space} | {status} | {} ({}) | {} | {} |",
                exact(metrics.peak_allocated),
                Size(metrics.peak_allocated),
                exact(metrics.growth),
                exact(metrics.retained),
            );
        }
        let driver_figures: Vec<String> =
            driver_lines::lines(outcome).iter().map(|line| escape::line(line)).collect();
        if !driver_figures.is_empty() {
            let _ = writeln!(
                self.driver,
                "{} {} on {}\n  {}\n",
                escape::line(&task.binary.id),
                escape::line(task.name()),
                task.leg.name(),
                driver_figures.join("\n  ")
            );
        }
        for note in notes::of(outcome) {
            let _ = writeln!(self.notes, "- {test} on {leg}: {}", message(&note));
        }
        let laws = findings::laws(&outcome.across.laws, Verbosity::Normal);
        if !laws.is_empty() {
            let laws: Vec<String> = laws.iter().map(|law| code(law)).collect();
            let _ = writeln!(self.laws, "- {test} on {leg}: {}", laws.join(", "));
        }
        if !matches!(verdict.status, Status::Passed | Status::Ignored) {
            let found = verdict.findings.iter();
            let lines: Vec<String> = found
                .flat_map(|finding| findings::lines(finding, Verbosity::Normal))
                .map(|line| escape::line(&line))
                .collect();
            let _ =
                writeln!(self.findings, "### {test} on {leg}\n\n{}\n", fenced(&lines.join("\n")));
        }
    }

    fn note(&mut self, note: &Note) {
        let _ = writeln!(self.notes, "- {}: {}", note.finding.code, message(&note.finding.message));
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.counts = summary::counts(tally);
        let lines = summary::cut_short(tally);
        if !lines.is_empty() {
            self.findings.insert_str(0, &format!("{}\n\n", fenced(&lines.join("\n"))));
        }
        if let Some(repeated) = summary::repeated(tally) {
            let _ = writeln!(self.notes, "- {repeated}");
        }
    }
}

impl ReportWriter for Markdown {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let Self { findings, rows, driver, laws, notes, counts } = self;
        let mut page = format!("## Memory tests: {counts}\n\n{findings}");
        if !notes.is_empty() {
            let _ = writeln!(page, "{notes}");
        }
        if !rows.is_empty() {
            page.push_str(
                "| test | device | status | peak (bytes) | growth per iteration | retained |\n",
            );
            page.push_str("|---|---|---|---:|---:|---:|\n");
            page.push_str(rows);
        }
        if !laws.is_empty() {
            let _ = write!(page, "\n{laws}");
        }
        if !driver.is_empty() {
            let _ = writeln!(
                page,
                "\n<details><summary>Driver and NVML</summary>\n\n{}\n\n</details>",
                fenced(driver.trim_end_matches('\n'))
            );
        }
        Ok(escape(page, Form::Text).into_owned().into_bytes())
    }
}
