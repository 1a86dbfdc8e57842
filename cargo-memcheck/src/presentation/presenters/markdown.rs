//! A Markdown report, for example for a pull request: the failures first, then a table.

use std::fmt::Write;

use memcheck_core::judgement::verdict::Status;
use memcheck_core::size::{Size, exact};

use super::{driver_lines, findings, summary};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::values::Verbosity;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::tally::Tally;

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
        let test = format!("`{}` `{}`", task.binary.id, task.name());
        let record = outcome.report.as_ref().map(|report| &report.record);
        let judged: Vec<_> = record
            .into_iter()
            .flat_map(|record| record.judged.iter().filter_map(|s| record.spaces.get_key_value(s)))
            .collect();
        if judged.is_empty() {
            let leg = task.leg.name();
            let _ = writeln!(self.rows, "| {test} | {leg} | {status} | | | |");
        }
        for (space, measured) in judged {
            let metrics = &measured.metrics;
            let _ = writeln!(
                self.rows,
                "| {test} | {} {space} | {status} | {} ({}) | {} | {} |",
                task.leg.name(),
                exact(metrics.peak_allocated),
                Size(metrics.peak_allocated),
                exact(metrics.growth),
                exact(metrics.retained),
            );
        }
        let driver_figures = driver_lines::lines(outcome);
        if !driver_figures.is_empty() {
            let _ = writeln!(
                self.driver,
                "{} {} on {}\n  {}\n",
                task.binary.id,
                task.name(),
                task.leg.name(),
                driver_figures.join("\n  ")
            );
        }
        if let Some(note) = driver_lines::repeats(outcome) {
            let _ = writeln!(self.notes, "- {test} on {}: {note}", task.leg.name());
        }
        let laws = findings::laws(&outcome.across.laws, Verbosity::Normal);
        if !laws.is_empty() {
            let _ = writeln!(self.laws, "- {test} on {}: `{}`", task.leg.name(), laws.join("`, `"));
        }
        if !matches!(verdict.status, Status::Passed | Status::Ignored) {
            let found = verdict.findings.iter();
            let lines: Vec<String> =
                found.flat_map(|finding| findings::lines(finding, Verbosity::Normal)).collect();
            let leg = task.leg.name();
            let _ =
                writeln!(self.findings, "### {test} on {leg}\n\n{}\n", fenced(&lines.join("\n")));
        }
    }

    fn note(&mut self, note: &Note) {
        let _ = writeln!(self.notes, "- {}: {}", note.finding.code, note.finding.message);
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
        Ok(page.into_bytes())
    }
}

/// Longer than all fences in the text, because a failing test body can print Markdown.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_fence_is_longer_than_the_fences_inside_it() {
        assert_eq!(fenced("a `b` c"), "```text\na `b` c\n```");
        assert_eq!(fenced("```\nnot the end"), "````text\n```\nnot the end\n````");
    }
}
