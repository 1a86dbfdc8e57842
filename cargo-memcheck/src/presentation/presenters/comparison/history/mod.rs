//! The history of a figure: a plot over the runs, and the runs in which it changed.

mod html;

use std::path::PathBuf;

use memcheck_core::presentation::sizes;
use memcheck_core::size::{Size, exact};
use serde_json::json;

use crate::comparison::history::{FigureSeries, HistoryEntry};
use crate::invocation::values::ReportFile;
use crate::presentation::presenters::reports::{self, ReportError};
use crate::presentation::presenters::{json, style};
use crate::system::error::Failure;
use crate::system::escape;
use crate::system::printing::print_lines;

const HEIGHT: u32 = 8;
/// Of a plot, with the labels of its axis.
const NARROWEST: u32 = 10;
const LABELS: u32 = 16;

pub(crate) fn print(all: &[FigureSeries<'_>], figure: &str) {
    print_lines(&lines(all, figure));
}

/// Writes the page of each report.
pub(crate) fn write(
    all: &[FigureSeries<'_>],
    figure: &str,
    reports: &[ReportFile],
) -> Result<(), Failure> {
    for ReportFile { path, .. } in reports {
        let text = html::page(all, figure);
        let error = |why: std::io::Error| ReportError(PathBuf::from(path), why.to_string());
        reports::replace(path, text.as_bytes()).map_err(error)?;
    }
    Ok(())
}

fn lines(all: &[FigureSeries<'_>], figure: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for series in all {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let id = series.id;
        let title = format!("{} {} ({})", id.binary, id.test, id.device);
        let runs = memcheck_core::size::counted(series.points.len() as u64, "run", "runs");
        lines.push(style::strong(&escape::line(&title)));
        let (scale, unit) = scale(series, figure);
        let unit = unit.map(|unit| format!(", in {unit}")).unwrap_or_default();
        lines.push(format!("{figure} of {}, {runs}{unit}", series.space));
        lines.extend(plot(series, scale));
        lines.extend(changes(series, figure));
    }
    lines
}

/// The largest unit in which the largest value is at least 1.
fn unit(most: u64) -> (f64, &'static str) {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let found = units.into_iter().find(|(bytes, _)| most >= *bytes);
    found.map_or((1.0, "B"), |(bytes, name)| (bytes as f64, name))
}

/// The unit of a plot, if it has one, and its size.
fn scale(series: &FigureSeries<'_>, figure: &str) -> (f64, Option<&'static str>) {
    let most = series.points.iter().map(|(_, value)| *value).max().unwrap_or(0);
    if !is_bytes(figure) {
        return (1.0, None);
    }
    let (scale, name) = unit(most);
    (scale, Some(name))
}

/// The columns of one run of a short history.
const WIDEST_RUN: usize = 4;

fn plot(series: &FigureSeries<'_>, scale: f64) -> Vec<String> {
    let values: Vec<f64> = series.points.iter().map(|(_, value)| *value as f64 / scale).collect();
    let (_, columns) = console::Term::stdout().size_checked().unwrap_or((24, 80));
    let most = u32::from(columns).saturating_sub(LABELS).max(NARROWEST);
    let of_run = (most as usize / values.len().max(1)).clamp(1, WIDEST_RUN);
    let wide = || values.iter().flat_map(|value| std::iter::repeat_n(*value, of_run));
    // A figure that never changes is one line. The library labels such a line with a whole number.
    let plot = if values.iter().all(|value| *value == values[0]) {
        let line = "\u{2500}".repeat(wide().count().min(most as usize));
        let label = if scale > 1.0 { format!("{:.2}", values[0]) } else { values[0].to_string() };
        format!(" {label} \u{253c}{line}")
    } else {
        let config = rasciigraph::Config::default().with_height(HEIGHT);
        let fits = wide().count() <= most as usize;
        let config = if fits { config } else { config.with_width(most) };
        rasciigraph::plot(wide().collect(), config)
    };
    let mut lines: Vec<String> = plot.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.extend(runs(&lines, values.len()));
    lines
}

/// The numbers of the first and of the last run, below their columns.
fn runs(plot: &[String], count: usize) -> Option<String> {
    let is_axis = |letter: char| matches!(letter, '\u{2524}' | '\u{253c}');
    let start = plot.iter().find_map(|line| line.chars().position(is_axis))? + 1;
    let end = plot.iter().map(|line| line.chars().count()).max()?;
    let last = if count > 1 { count.to_string() } else { String::new() };
    let between = end.saturating_sub(start + 1).max(last.len() + 1);
    Some(format!("{:start$}1{last:>between$}", "").trim_end().to_owned())
}

fn is_bytes(figure: &str) -> bool {
    figure != "allocations"
}

/// A run whose value differs from the one before.
struct Step<'a> {
    /// Among the points of its series.
    number: usize,
    entry: &'a HistoryEntry,
    value: u64,
    /// `None` for the first run.
    before: Option<u64>,
}

impl Step<'_> {
    fn is_higher(&self) -> bool {
        self.before.is_some_and(|then| self.value > then)
    }

    /// `+1.00 KiB (+50.0%)`; empty for the first run.
    fn change(&self, figure: &str) -> String {
        let Some(then) = self.before else { return String::new() };
        let sign = if self.value < then { '-' } else { '+' };
        let amount = self.value.abs_diff(then);
        let amount = if is_bytes(figure) { Size(amount).to_string() } else { exact(amount) };
        let share = sizes::share(then, self.value).map(|share| format!(" ({share})"));
        format!("{sign}{amount}{}", share.unwrap_or_default())
    }
}

/// The first run, and each run whose value differs from the one before.
fn steps<'a>(series: &'a FigureSeries<'_>) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for (number, (entry, value)) in series.points.iter().enumerate() {
        let before = steps.last().map(|step| step.value);
        if before != Some(*value) {
            steps.push(Step { number, entry, value: *value, before });
        }
    }
    steps
}

fn written(value: u64, figure: &str) -> String {
    match is_bytes(figure) {
        true => format!("{} B ({})", exact(value), Size(value)),
        false => exact(value),
    }
}

fn changes(series: &FigureSeries<'_>, figure: &str) -> Vec<String> {
    let line = |step: Step<'_>| {
        let mut line = format!("  {}  {}", described(step.entry), written(step.value, figure));
        if step.before.is_some() {
            line = format!("{line}  {}", step.change(figure));
        }
        if step.is_higher() { style::warning(&line) } else { line }
    };
    steps(series).into_iter().map(line).collect()
}

/// `2026-11-23T06:00:00Z 0123456789`, and ` failed` if the test did.
fn described(entry: &HistoryEntry) -> String {
    let commit = entry.commit.as_deref().map_or("-", |it| it.get(..10).unwrap_or(it));
    let failed = if entry.status.fails() { " failed" } else { "" };
    escape::line(&format!("{} {commit:<10}{failed}", entry.time))
}

/// One object `history` for each series.
pub(crate) fn print_json(all: &[FigureSeries<'_>], figure: &str) {
    for series in all {
        let points = series.points.iter().map(|(entry, value)| {
            json!({"time": entry.time, "commit": entry.commit, "lock": entry.lock, "value": value})
        });
        let points: Vec<serde_json::Value> = points.collect();
        let id = series.id;
        json::print(&json!({
            "type": "history",
            "package": id.package,
            "binary": id.binary,
            "test": id.test,
            "device": id.device,
            "space": series.space,
            "figure": figure,
            "points": points,
        }));
    }
}

#[cfg(test)]
mod tests {
    use crate::comparison::history::{parse, series};

    use super::*;

    fn entries(values: &[u64]) -> Vec<HistoryEntry> {
        let line = |(number, value): (usize, &u64)| {
            json!({
                "version": 1, "time": format!("2026-11-{:02}T00:00:00Z", number + 1),
                "commit": "0123456789abcdef", "package": "app", "binary": "app::mem", "test": "a",
                "device": "cpu", "status": "passed",
                "figures": {"host": {"peak_allocated": value, "allocations": value}},
            })
            .to_string()
        };
        parse(&values.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")).unwrap()
    }

    fn shown(values: &[u64], figure: &str) -> String {
        let entries = entries(values);
        let text = lines(&series(&entries, figure, |_| true), figure).join("\n");
        console::strip_ansi_codes(&escape::terminal(&text)).into_owned()
    }

    #[test]
    fn a_figure_is_plotted_with_the_runs_in_which_it_changed() {
        let mib = 1 << 20;
        let text = shown(&[mib, mib, 3 * mib, 3 * mib], "peak_allocated");
        assert!(
            text.starts_with("app::mem a (cpu)\npeak_allocated of host, 4 runs, in MiB\n"),
            "{text}"
        );
        assert!(text.contains("3.00") && text.contains("1.00"), "{text}");
        let axis = text.lines().find(|line| line.trim_start().starts_with("1 ")).unwrap();
        let plot = text.lines().find(|line| line.contains("3.00")).unwrap();
        assert_eq!((axis.len(), axis.ends_with('4')), (plot.chars().count(), true), "{text}");
        assert_eq!(text.matches("2026-").count(), 2, "{text}");
        let last = text.lines().last().unwrap();
        assert!(
            last.contains("2026-11-03") && last.ends_with("MiB)  +2.00 MiB (+200.0%)"),
            "{last}"
        );
    }

    #[test]
    fn a_page_has_a_plot_with_the_changes_marked() {
        let mib = 1 << 20;
        let entries = entries(&[mib, mib, 3 * mib, 2 * mib]);
        let page = html::page(&series(&entries, "peak_allocated", |_| true), "peak_allocated");
        let page = page.replace('\u{a0}', " ");
        let document = page.strip_prefix("<!DOCTYPE html>").unwrap();
        assert_eq!(document.matches("<path class=\"step").count(), 3, "{document}");
        assert_eq!(document.matches("<path class=\"step worse\"").count(), 1, "{document}");
        assert!(document.contains("+2.00 MiB (+200.0%)"), "{document}");
        assert!(document.contains("<span>3.00 MiB</span>"), "{document}");
        let points = document.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(points.split(' ').count(), 7, "a corner before each further run: {points}");
        for foreign in ["http:", "https:", " src=", "<script", "NaN", "inf"] {
            assert!(!document.contains(foreign), "`{foreign}` is in {document}");
        }
        let one = self::entries(&[7]);
        let page = html::page(&series(&one, "allocations", |_| true), "allocations");
        assert!(!page.contains("NaN") && page.matches("<path class=\"step").count() == 1, "{page}");
    }

    #[test]
    fn a_constant_figure_has_its_value_at_the_axis() {
        let text = shown(&[8_598_323; 3], "peak_allocated");
        assert!(text.contains(" 8.20 \u{253c}\u{2500}\u{2500}\u{2500}"), "{text}");
    }

    #[test]
    fn one_run_and_a_constant_figure_have_a_plot() {
        for values in [&[7][..], &[7, 7, 7], &[0, 0], &[7; 500]] {
            let text = shown(values, "allocations");
            assert!(text.contains("allocations of host"), "{text}");
            assert!(text.lines().count() < 20, "{text}");
            assert!(text.contains(&format!(" {} \u{253c}", values[0])), "{text}");
            assert!(text.lines().all(|line| line.chars().count() < 100), "{text}");
        }
    }
}
