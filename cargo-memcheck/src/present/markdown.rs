//! Markdown, as for a pull request: what failed first, then a table.

use std::fmt::Write;

use memcheck_core::protocol::Status;
use memcheck_core::size::{Size, exact};

use super::{beside, findings, summary};
use crate::note::Note;
use crate::options::Verbosity;
use crate::presenter::{Presenter, Report};
use crate::tally::Tally;
use crate::task::{Outcome, Task};

/// Collects the parts of the page.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    findings: String,
    rows: String,
    beside: String,
    laws: String,
    notes: String,
    counts: String,
}

impl Presenter for Markdown {
    fn test_finished(&mut self, task: &Task, outcome: &Outcome) {
        let verdict = &outcome.verdict;
        let status = match verdict.status {
            Status::Passed => "passed",
            Status::NeedsReview => "**to review**",
            Status::Failed => "**failed**",
            Status::NotMeasured => "**not measured**",
            Status::Ignored => "ignored",
        };
        let test = format!("`{}` `{}`", task.binary.id, task.entry.name);
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
        let said = beside::lines(outcome);
        if !said.is_empty() {
            let _ = writeln!(
                self.beside,
                "{} {} on {}\n  {}\n",
                task.binary.id,
                task.entry.name,
                task.leg.name(),
                said.join("\n  ")
            );
        }
        let laws = findings::laws(&outcome.across.laws, Verbosity::Normal);
        if !laws.is_empty() {
            let _ = writeln!(self.laws, "- {test} on {}: `{}`", task.leg.name(), laws.join("`, `"));
        }
        if !matches!(verdict.status, Status::Passed | Status::Ignored) {
            let _ = writeln!(self.findings, "### {test} on {}\n\n```text", task.leg.name());
            for finding in &verdict.findings {
                let _ = writeln!(
                    self.findings,
                    "{}",
                    findings::lines(finding, Verbosity::Normal).join("\n")
                );
            }
            self.findings.push_str("```\n\n");
        }
    }

    fn note(&mut self, note: &Note) {
        let _ = writeln!(self.notes, "- {}: {}", note.finding.code, note.finding.message);
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.counts = summary::counts(tally);
    }
}

impl Report for Markdown {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let Self { findings, rows, beside, laws, notes, counts } = self;
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
        if !beside.is_empty() {
            let _ = writeln!(
                page,
                "\n<details><summary>Driver and NVML</summary>\n\n```text\n{}```\n\n</details>",
                beside.trim_end_matches('\n').to_owned() + "\n"
            );
        }
        Ok(page.into_bytes())
    }
}
