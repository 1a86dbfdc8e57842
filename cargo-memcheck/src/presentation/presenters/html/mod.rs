//! A self-contained HTML page: a table of the tests, and for each test its findings, a plot of live
//! bytes over the iterations, and the holders of memory if the test has attribution.

mod attribution;
mod chart;
mod findings;

use maud::{DOCTYPE, Markup, html};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::record::SpaceRecord;
use memcheck_core::size::exact;
use memcheck_core::space::Space;

use super::{driver_lines, summary, unknown_reads};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::values::Verbosity;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::tally::Tally;
use crate::system::escape::{Form, escape};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.failed,.not-measured{color:#c22}.needs-review{color:#a60}\
pre{background:#8881;padding:.6rem;overflow-x:auto}svg{background:#8881}summary{cursor:pointer}\
td{vertical-align:top}details details{margin:.4rem 0 .4rem 1rem}table{margin:.4rem 0}td pre{margin:0}";

#[derive(Debug, Default)]
pub(crate) struct Html {
    rows: Vec<Markup>,
    details: Vec<Markup>,
    notes: Vec<String>,
    counts: String,
    cut_short: Vec<String>,
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::NeedsReview => "needs-review",
        Status::Failed => "failed",
        Status::NotMeasured => "not-measured",
        Status::Ignored => "ignored",
    }
}

impl Presenter for Html {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let status = status_name(outcome.verdict.status);
        let name = format!("{} {}", task.binary.id, task.name());
        let record = outcome.report.as_ref().map(|report| &report.record);
        let judged: Vec<(Space, &SpaceRecord)> = record
            .into_iter()
            .flat_map(|record| {
                record.judged.iter().filter_map(|s| Some((*s, record.spaces.get(s)?)))
            })
            .collect();
        let metrics = judged.first().map(|(_, measured)| measured.metrics).unwrap_or_default();
        self.rows.push(html! {
            tr {
                td { (name) }
                td { (task.leg.name()) }
                td class=(status) {
                    (status)
                    @if let Some(values) = unknown_reads::of(outcome) { ", " (values.mark()) }
                }
                td.n { (exact(metrics.peak_allocated)) }
                td.n { (exact(metrics.growth)) }
                td.n { (exact(metrics.retained)) }
            }
        });
        if outcome.verdict.status == Status::Ignored {
            return;
        }
        let attribution = record.and_then(|record| record.attribution.as_ref());
        let hint = attribution.and_then(|attribution| attribution.hint.as_ref());
        let driver = driver_lines::lines(outcome);
        let open = !matches!(outcome.verdict.status, Status::Passed);
        self.details.push(html! {
            details open[open] {
                summary class=(status) { (name) " on " (task.leg.name()) }
                @for finding in &outcome.verdict.findings { (findings::finding(finding)) }
                @if let Some(note) = driver_lines::repeats(outcome) { p { "note: " (note) } }
                @if let Some(note) = unknown_reads::note(outcome) { p { "note: " (note) } }
                @for line in super::findings::laws(&outcome.across.laws, Verbosity::Normal) {
                    p { (line) }
                }
                @for (space, measured) in judged {
                    @if !measured.allocated.is_empty() { (chart::iterations(space, measured)) }
                    @if let Some(record) = record { (attribution::space(record, space)) }
                }
                @if !driver.is_empty() { pre { (driver.join("\n")) } }
                @if let Some(hint) = hint { p { "hint: " (hint) } }
            }
        });
    }

    fn note(&mut self, note: &Note) {
        self.notes.push(format!("{}: {}", note.finding.code, note.finding.message));
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.counts = summary::counts(tally);
        self.cut_short = summary::cut_short(tally);
        self.notes.extend(summary::repeated(tally));
    }
}

impl ReportWriter for Html {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { "Memory tests: " (self.counts) }
                    style { (maud::PreEscaped(STYLE)) }
                }
                body {
                    h1 { "Memory tests: " (self.counts) }
                    @if !self.cut_short.is_empty() { pre.failed { (self.cut_short.join("\n")) } }
                    @if !self.notes.is_empty() { ul { @for note in &self.notes { li { (note) } } } }
                    table {
                        tr {
                            th { "test" } th { "device" } th { "status" }
                            th { "peak (bytes)" } th { "growth per iteration" } th { "retained" }
                        }
                        @for row in &self.rows { (row) }
                    }
                    h2 { "Test by test" }
                    @for detail in &self.details { (detail) }
                }
            }
        };
        Ok(escape(&page.into_string(), Form::Markup).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::leaky;
    use super::*;
    use crate::discovery::task::example::task;

    fn page(outcome: &TestOutcome) -> String {
        let mut html = Html::default();
        html.test_finished(&task(), outcome);
        String::from_utf8(html.text().unwrap()).unwrap()
    }

    #[test]
    fn an_attributed_test_shows_sites_cause_peak_scopes_and_survivors() {
        let page = page(&leaky());
        for part in [
            "<strong>leak</strong>: host grows by 2,097,152 B",
            "<td>src/model.rs:20</td><td>app::Model::forward</td><td>matmul</td>",
            "<td>[512,1024] f32</td><td>model.head</td>",
            "(graph-kept)",
            "remedy: call `detach()` on the tensor that is kept",
            "<summary>cargo memcheck explain graph-kept</summary>",
            "live bytes over about 26 allocations and frees, from 0 to the peak of 26.0 MiB, in \
             iteration 12",
            "<polygon",
            "host at the peak, in iteration 12",
            "<td>kept from earlier iterations</td>",
            "<summary>scopes of host</summary>",
            "<td>model.head</td>",
            "growth: 2,097,152 B (2.0 MiB) per iteration, over 10",
            "steady, 2,097,152 B (2.0 MiB) per iteration",
            "hint: no line tables",
        ] {
            assert!(page.contains(part), "`{part}` is not in\n{page}");
        }
        for foreign in ["<script", "http:", "https:", " src=", "<link"] {
            assert!(!page.contains(foreign), "`{foreign}` is in\n{page}");
        }
    }

    #[test]
    fn a_test_without_call_stacks_shows_its_iterations() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let page = page(&counted);
        assert!(page.contains("<polyline") && page.contains("of 10 iterations"), "{page}");
        assert!(!page.contains("<polygon") && !page.contains("at the peak"), "{page}");
    }
}
