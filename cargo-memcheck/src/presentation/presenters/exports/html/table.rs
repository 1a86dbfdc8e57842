//! The table of all tests on the first page of a report.

use std::cmp::Ordering;

use maud::{Markup, html};
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::presentation::sizes;
use memcheck_core::size::{Size, both, counted};

use super::data::{FigureRow, Then, figures, source_of_limit};
use super::markup::status_text;
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::notes;

/// The line of the table, with a link to the view of the test.
pub(super) fn row(link: &Markup, task: &Task, outcome: &TestOutcome, then: &Then) -> Markup {
    let verdict = &outcome.verdict;
    let record = outcome.report.as_ref().map(|report| &report.record);
    let rows = record.map(|record| figures(record, then)).unwrap_or_default();
    let status = verdict.status.name();
    let is_new = verdict.has(Code::MissingBaseline);
    let shown = || verdict.findings.iter().filter(|it| it.code != Code::MissingBaseline);
    let finding = shown().min_by_key(|finding| finding.code.is_about_a_number());
    let figure = |name: &str| rows.iter().find(|row| row.name == name);
    let codes = codes(finding.into_iter().chain(shown()));
    let peak = figure("peak_allocated");
    html! {
        tr data-status=(status) data-new[is_new] data-device=(task.leg.name())
            data-finding=[codes.first()] data-change=[peak.and_then(difference)] {
            th scope="row" { (link) " " span.device { (task.leg.name()) } }
            td.result {
                span.status.(status) { (status_text(verdict.status)) }
                @if is_new { " " span.status.new { "new" } }
                @if let Some(values) = notes::unknown_reads(outcome) { " " span.status.new { (values.mark()) } }
                @if !codes.is_empty() { " " span.found { @for code in codes { span.code { (code) } " " } } }
            }
            (bytes("peak", peak, finding))
            (bytes("growth", figure("growth"), finding))
            (limit(finding, &rows))
            (seconds(outcome))
        }
    }
}

/// Every code once, in the order of the findings.
fn codes<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<Code> {
    let mut codes: Vec<Code> = Vec::new();
    for finding in findings {
        if !codes.contains(&finding.code) {
            codes.push(finding.code);
        }
    }
    codes
}

/// The figure, and below it its change from the baseline. A test without a complete record has no
/// figure, which differs from zero bytes.
fn bytes(label: &str, row: Option<&FigureRow>, finding: Option<&Finding>) -> Markup {
    let limit = finding.filter(|it| !it.code.is_about_a_number()).and_then(|it| it.limit);
    match row {
        Some(row) => html! {
            td.n data-label=(label) data-value=(row.now) title=(both(row.now)) {
                (sizes::apart(row.now, limit.unwrap_or(row.now))[0])
                // The growth of a leak is its change from a baseline without one.
                @if label == "peak" { (change(row)) }
            }
        },
        None => html! { td.n data-value="-1" { (none()) } },
    }
}

/// The mark of a cell without a value.
fn none() -> Markup {
    html! { span.none { "\u{2014}" } }
}

fn seconds(outcome: &TestOutcome) -> Markup {
    let seconds = outcome.duration.as_secs_f64();
    html! {
        @if outcome.duration.is_zero() { td.n data-value="0" { (none()) } }
        @else { td.n data-label="took" data-value=(seconds) { (format!("{seconds:.2} s")) } }
    }
}

/// The change of a figure from its baseline; `None` without one.
fn difference(row: &FigureRow) -> Option<i128> {
    row.then.map(|then| i128::from(row.now) - i128::from(then))
}

/// `+1.00 MiB (+24.2%)` on a line of its own, if the figure has changed.
fn change(row: &FigureRow) -> Markup {
    let then = row.then.unwrap_or(row.now);
    let (class, sign) = match row.now.cmp(&then) {
        Ordering::Equal => return html! {},
        Ordering::Greater => ("more", '+'),
        Ordering::Less => ("less", '\u{2212}'),
    };
    html! {
        " " span.change.(class) {
            span { (sign) (Size(row.now.abs_diff(then))) }
            @if let Some(share) = sizes::share(then, row.now) { " " span { "(" (share) ")" } }
        }
    }
}

/// At most two lines: the figure, and in parentheses the source of the limit.
fn limit(finding: Option<&Finding>, rows: &[FigureRow]) -> Markup {
    let Some(text) = text_of_limit(finding, rows) else {
        return html! { td.n.limit { (none()) } };
    };
    let (figure, source) = match text.split_once(" (") {
        Some((figure, source)) => (figure, Some(source)),
        None => (text.as_str(), None),
    };
    html! {
        td.n.limit data-label="limit" {
            span { (figure) }
            @if let Some(source) = source { " " span { "(" (source) } }
        }
    }
}

/// The limit of the finding or, without one, that of the peak or of the growth.
fn text_of_limit(finding: Option<&Finding>, rows: &[FigureRow]) -> Option<String> {
    if let Some(limit) = finding.and_then(|finding| finding.limit) {
        let figure = finding.and_then(|it| it.bytes_per_iteration.or(it.figure));
        let limit = match finding.is_some_and(|it| it.code.is_about_a_number()) {
            true => counted(limit, "allocation", "allocations"),
            false => sizes::apart(limit, figure.unwrap_or(limit))[0].clone(),
        };
        let name = finding.map_or("", |finding| limited(finding.code));
        return Some(match finding.and_then(|finding| Some((finding.limit?, finding.baseline?))) {
            Some((limit_in_bytes, then)) => {
                format!("{name}{limit} ({})", source_of_limit(limit_in_bytes > then))
            }
            None => format!("{name}{limit}"),
        });
    }
    let of = |name: &str| {
        let limit = rows.iter().find(|row| row.name == name)?.limit.as_ref()?;
        Some(limit.decides.clone())
    };
    let peak = of("peak_allocated").map(|peak| format!("peak {peak}"));
    peak.or_else(|| of("growth").map(|growth| format!("growth {growth}")))
}

/// The figure that a finding judges, unless its code or the unit of the limit names it.
fn limited(code: Code) -> &'static str {
    match code {
        Code::Leak | Code::GrowthRegression => "growth ",
        Code::PeakLimit | Code::PeakRegression => "peak ",
        _ => "",
    }
}

/// The rows of one test executable, below a row with its name.
pub(super) fn group(binary: &str, rows: &[Markup]) -> Markup {
    html! {
        tbody {
            tr.group { th scope="rowgroup" colspan=(COLUMNS.len()) { (binary) } }
            @for row in rows { (row) }
        }
    }
}

/// The columns, with the kind of their order, by which the script sorts the table. It also sorts by
/// the attributes of the rows.
const COLUMNS: [(&str, Option<&str>); 6] = [
    ("Test", Some("text")),
    ("Result", Some("status")),
    ("Peak", Some("number")),
    ("Growth per iteration", Some("number")),
    ("Limit", None),
    ("Time", Some("number")),
];

/// The script hides columns that have one value in all rows, which it states above the table.
pub(super) fn table(groups: &Markup) -> Markup {
    html! {
        div.wide {
            table #tests {
                caption.hidden { "All tests of the run" }
                thead {
                    tr {
                        @for (number, (title, order)) in COLUMNS.into_iter().enumerate() {
                            th.n[number > 1] scope="col" data-sort=[order] { (title) }
                        }
                    }
                }
                (groups)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_test_is_in_its_row() {
        use crate::discovery::task::example::task;
        use crate::presentation::presenters::example::leaky;
        use memcheck_core::judgement::finding::TABLE;

        let cell = |codes: &[Code]| {
            let mut outcome = leaky();
            outcome.verdict.findings =
                codes.iter().map(|code| Finding::new(*code, "why")).collect();
            let row = row(&html! {}, &task(), &outcome, &Then::default()).into_string();
            let (_, rest) = row.split_once("<td class=\"result\">").unwrap();
            let cell = rest.split_once("</td>").unwrap().0;
            let found = cell.split_once("<span class=\"found\">").map_or("", |(_, found)| found);
            found.strip_suffix("</span>").unwrap_or(found).to_owned()
        };
        for entry in TABLE {
            // A new test is marked in the column of its result.
            let expected = match entry.code {
                Code::MissingBaseline => String::new(),
                _ => format!("<span class=\"code\">{}</span> ", entry.name),
            };
            assert_eq!(cell(&[entry.code]), expected);
        }
        let all = cell(&[Code::AllocationsRegression, Code::Leak, Code::Leak]);
        let both = ["leak", "allocations-regression"];
        assert_eq!(all, both.map(|code| format!("<span class=\"code\">{code}</span> ")).concat());
    }

    #[test]
    fn a_figure_just_above_its_limit_is_shown_in_bytes() {
        let finding = Finding {
            space: Some(memcheck_core::space::Space::Host),
            figure: Some(1_048_580),
            limit: Some(1_048_576),
            ..Finding::new(Code::PeakLimit, "")
        };
        assert_eq!(text_of_limit(Some(&finding), &[]).as_deref(), Some("peak 1,048,576 B"));
        let empty = "<td class=\"n limit\"><span class=\"none\">\u{2014}</span></td>";
        assert_eq!(limit(None, &[]).into_string(), empty);
        let name = "peak_allocated";
        let row = |now, then| FigureRow {
            space: String::new(),
            name: name.to_owned(),
            now,
            then,
            limit: None,
            in_bytes: false,
        };
        let cell = bytes("peak", Some(&row(1_048_580, None)), Some(&finding)).into_string();
        assert!(cell.contains(">1,048,580 B<"), "{cell}");
        let far = bytes("peak", Some(&row(2 << 20, None)), Some(&finding)).into_string();
        assert!(far.contains(">2.00 MiB<"), "{far}");
        let from = |then| change(&row(8, Some(then))).into_string();
        assert!(from(0).contains(">+8 B</span></span>"), "{}", from(0));
        assert!(from(4).contains(">+4 B</span> <span>(+100.0%)</span>"), "{}", from(4));
        assert_eq!((from(8), change(&row(8, None)).into_string()), (String::new(), String::new()));
        let regression = Finding { baseline: Some(1_048_576), ..finding };
        let cell = limit(Some(&regression), &[]).into_string();
        assert!(cell.contains("<span>peak 1,048,576 B</span> <span>(baseline)</span>"), "{cell}");
    }
}
