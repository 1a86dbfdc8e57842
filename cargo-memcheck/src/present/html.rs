//! One page of HTML that needs nothing else: a table of the tests, and for
//! each its findings and live bytes over the iterations as a plot.

use maud::{DOCTYPE, Markup, html};
use memcheck_core::protocol::Status;
use memcheck_core::record::SpaceRecord;
use memcheck_core::size::{both, exact};
use memcheck_core::space::Space;

use super::{Presenter, Report, findings, summary};
use crate::note::Note;
use crate::options::Verbosity;
use crate::run::{Outcome, Task};
use crate::tally::Tally;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.failed,.not-measured{color:#c22}.needs-review{color:#a60}\
pre{background:#8881;padding:.6rem;overflow-x:auto}svg{background:#8881}summary{cursor:pointer}";

/// Width and height of a plot, in its own units.
const PLOT: (f64, f64) = (640.0, 120.0);

/// Collects the parts of the page.
#[derive(Debug, Default)]
pub(crate) struct Html {
    rows: Vec<Markup>,
    details: Vec<Markup>,
    notes: Vec<String>,
    counts: String,
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

/// Live bytes at the end of each measured iteration, from zero to the highest
/// peak, with the peak of each iteration above it.
fn plot(space: Space, measured: &SpaceRecord) -> Markup {
    let highest =
        measured.peak.iter().chain(&measured.allocated).copied().max().unwrap_or(0).max(1);
    let step = PLOT.0 / (measured.allocated.len().saturating_sub(1)).max(1) as f64;
    let points = |series: &[u64]| {
        let point = |(place, bytes): (usize, &u64)| {
            let height = PLOT.1 - *bytes as f64 / highest as f64 * PLOT.1;
            format!("{:.1},{height:.1}", place as f64 * step)
        };
        series.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
    };
    html! {
        figure {
            svg viewBox=(format!("-4 -4 {} {}", PLOT.0 + 8.0, PLOT.1 + 8.0)) width=(PLOT.0) role="img" {
                title { "live and peak bytes of " (space) " over the measured iterations" }
                polyline points=(points(&measured.peak)) fill="none" stroke="#999" stroke-dasharray="4 3" {}
                polyline points=(points(&measured.allocated)) fill="none" stroke="#27c" stroke-width="2" {}
            }
            figcaption {
                (space) ": live bytes (line) and peak (dashed) of " (measured.allocated.len())
                " iterations, up to " (both(highest)) "; growth " (both(measured.metrics.growth))
                " an iteration, straight line " (format!("{:+.1}", measured.slope)) " B"
            }
        }
    }
}

impl Presenter for Html {
    fn test_finished(&mut self, task: &Task, outcome: &Outcome) {
        let status = status_name(outcome.verdict.status);
        let name = format!("{} {}", task.binary.id, task.entry.name);
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
                td class=(status) { (status) }
                td.n { (exact(metrics.peak_allocated)) }
                td.n { (exact(metrics.growth)) }
                td.n { (exact(metrics.retained)) }
            }
        });
        if outcome.verdict.status == Status::Ignored {
            return;
        }
        let lines: Vec<String> = outcome
            .verdict
            .findings
            .iter()
            .flat_map(|finding| findings::lines(finding, Verbosity::Verbose))
            .collect();
        let open = !matches!(outcome.verdict.status, Status::Passed);
        self.details.push(html! {
            details open[open] {
                summary class=(status) { (name) " on " (task.leg.name()) }
                @if !lines.is_empty() { pre { (lines.join("\n")) } }
                @for (space, measured) in judged {
                    @if !measured.allocated.is_empty() { (plot(space, measured)) }
                }
            }
        });
    }

    fn note(&mut self, note: &Note) {
        self.notes.push(format!("{}: {}", note.finding.code, note.finding.message));
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.counts = summary::counts(tally);
    }
}

impl Report for Html {
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
                    @if !self.notes.is_empty() { ul { @for note in &self.notes { li { (note) } } } }
                    table {
                        tr {
                            th { "test" } th { "device" } th { "status" }
                            th { "peak (bytes)" } th { "growth an iteration" } th { "retained" }
                        }
                        @for row in &self.rows { (row) }
                    }
                    h2 { "Over the iterations" }
                    @for detail in &self.details { (detail) }
                }
            }
        };
        Ok(page.into_string().into_bytes())
    }
}
