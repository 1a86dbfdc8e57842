//! The table of all tests on the first page of a report.

use std::cmp::Ordering;

use maud::{Markup, html};
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::presentation::sizes;
use memcheck_core::size::{Size, both, counted};

use super::data::{FigureRow, Then, figures, source_of_limit};
use super::failure;
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
    let passes = matches!(verdict.status, Status::Passed | Status::Ignored);
    // In the order of the cards.
    let kind = (!passes).then(|| failure::kind(outcome) as usize);
    html! {
        tr data-status=(status) data-new[is_new] data-device=(task.leg.name())
            data-finding=[codes.first()] data-kind=[kind] data-change=[peak.and_then(difference)] {
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

/// A limit in two lines: `4.13 MiB`, and below it `peak, baseline`.
#[derive(Debug, PartialEq, Eq)]
struct ShownLimit {
    value: String,
    figure: Option<&'static str>,
    source: Option<&'static str>,
}

/// A limit relative to another test has a longer text, which its view shows.
const MOST_CHARACTERS: usize = 24;

fn limit(finding: Option<&Finding>, rows: &[FigureRow]) -> Markup {
    let Some(ShownLimit { value, figure, source }) = shown_limit(finding, rows) else {
        return html! { td.n.limit { (none()) } };
    };
    let is_long = value.chars().count() > MOST_CHARACTERS;
    let of: Vec<&str> = figure.into_iter().chain(source).collect();
    html! {
        td.n.limit data-label="limit" title=[is_long.then_some(&value)] {
            span { @if is_long { "relative" } @else { (value) } }
            @if !of.is_empty() { " " span { (of.join(", ")) } }
        }
    }
}

/// The limit in one line: `peak 4.13 MiB (baseline)`.
pub(in crate::presentation::presenters::exports) fn text_of_limit(
    finding: Option<&Finding>,
    rows: &[FigureRow],
) -> Option<String> {
    let ShownLimit { value, figure, source } = shown_limit(finding, rows)?;
    let figure = figure.map(|figure| format!("{figure} ")).unwrap_or_default();
    let source = source.map(|source| format!(" ({source})")).unwrap_or_default();
    Some(format!("{figure}{value}{source}"))
}

/// The limit of the finding or, without one, that of the peak or of the growth.
fn shown_limit(finding: Option<&Finding>, rows: &[FigureRow]) -> Option<ShownLimit> {
    if let Some((finding, limit)) = finding.and_then(|finding| Some((finding, finding.limit?))) {
        let figure = finding.bytes_per_iteration.or(finding.figure);
        let value = match finding.code.is_about_a_number() {
            true => counted(limit, "allocation", "allocations"),
            false => sizes::apart(limit, figure.unwrap_or(limit))[0].clone(),
        };
        let source = finding.baseline.map(|then| source_of_limit(limit > then));
        return Some(ShownLimit { value, figure: limited(finding.code), source });
    }
    let of = |name: &str, figure: &'static str| {
        let limit = rows.iter().find(|row| row.name == name)?.limit.as_ref()?;
        let sourced =
            [source_of_limit(false), source_of_limit(true)].into_iter().find_map(|source| {
                let value = limit.decides.strip_suffix(&format!(" ({source})"))?;
                Some((value, Some(source)))
            });
        let (value, source) = sourced.unwrap_or((&limit.decides, None));
        Some(ShownLimit { value: value.to_owned(), figure: Some(figure), source })
    };
    of("peak_allocated", "peak").or_else(|| of("growth", "growth"))
}

/// The figure that a finding judges, unless its code or the unit of the limit names it.
fn limited(code: Code) -> Option<&'static str> {
    match code {
        Code::Leak | Code::GrowthRegression => Some("growth"),
        Code::PeakLimit | Code::PeakRegression => Some("peak"),
        _ => None,
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
    ("Growth\u{a0}per iteration", Some("number")),
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
    use super::super::data::FigureLimit;
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
        assert!(cell.contains("<span>1,048,576 B</span> <span>peak, baseline</span>"), "{cell}");
        let decided = |decides: &str| {
            let limit = Some(FigureLimit { decides: decides.to_owned(), others: None });
            FigureRow { limit, ..row(8, None) }
        };
        let sourced = text_of_limit(None, &[decided("12 B (baseline and tolerance)")]);
        assert_eq!(sourced.as_deref(), Some("peak 12 B (baseline and tolerance)"));
        let relative = decided("1.5 times that of another_test_with_a_name");
        let cell = limit(None, &[relative]).into_string();
        assert!(cell.contains("<span>relative</span> <span>peak</span>"), "{cell}");
        assert!(cell.contains("title=\"1.5 times that of another_test_with_a_name\""), "{cell}");
    }
}
