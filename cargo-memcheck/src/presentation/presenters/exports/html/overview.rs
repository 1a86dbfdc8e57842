//! The first page of a report as plain HTML, which needs no script: cards with the counts, the tests
//! that did not pass, and a table of all tests.

use maud::{Markup, html};
use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::finding::{Code, Finding, GrownHolder};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::size::{Size, both, counted, exact};

use super::commands::{self, NextCommand};
use super::data::{FigureRow, Sources, Then, figures};
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::{findings, notes, places};
use crate::presentation::tally::Tally;

/// More failures are in the table only.
pub(super) const MOST_FAILURES: usize = 100;
/// Holders at the peak that grew; the view of the test has all of them.
const MOST_GROWN: usize = 4;

pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::NeedsReview => "needs-review",
        Status::Failed => "failed",
        Status::NotMeasured => "not-measured",
        Status::Ignored => "ignored",
    }
}

/// The text of a status for people.
pub(super) fn status_text(status: Status) -> &'static str {
    match status {
        Status::NeedsReview => "to review",
        Status::NotMeasured => "not measured",
        other => status_name(other),
    }
}

/// A card for the failures, and for each other count that is not zero; the script makes it a filter
/// of the table.
pub(super) fn cards(tally: &Tally) -> Markup {
    let cards = [
        ("failed", "failed", tally.failed),
        ("not-measured", "not measured", tally.not_measured),
        ("needs-review", "to review", tally.needs_review),
        ("passed", "passed", tally.passed),
        ("new", "without a baseline", tally.new),
        ("ignored", "ignored", tally.ignored),
        ("not-run", "not run", tally.not_run),
    ];
    html! {
        ul.cards {
            @for (name, text, count) in cards {
                @if name == "failed" || count > 0 {
                    li.card data-status=(name) data-count=(count) {
                        span.count { (exact(count as u64)) } span.word { (text) }
                    }
                }
            }
            @if !tally.took.is_zero() {
                li.card { span.count { (format!("{:.1} s", tally.took.as_secs_f64())) } span.word { "test time" } }
            }
        }
    }
}

fn name(number: usize, task: &Task) -> Markup {
    html! { a.test href={ "#t" (number) } { (task.name()) } " " span.binary { (task.binary.id) } }
}

/// The line of the table.
pub(super) fn row(number: usize, task: &Task, outcome: &TestOutcome, then: &Then) -> Markup {
    let verdict = &outcome.verdict;
    let record = outcome.report.as_ref().map(|report| &report.record);
    let rows = record.map(|record| figures(record, then)).unwrap_or_default();
    let status = status_name(verdict.status);
    let is_new = verdict.has(Code::MissingBaseline);
    let shown = verdict.findings.iter().filter(|finding| finding.code != Code::MissingBaseline);
    let finding = shown.min_by_key(|finding| is_count(finding));
    let figure = |name: &str| rows.iter().find(|row| row.name == name);
    html! {
        tr data-status=(status) data-new[is_new] {
            th scope="row" { (name(number, task)) }
            td { (task.leg.name()) }
            td {
                span.status.(status) { (status_text(verdict.status)) }
                @if is_new { " " span.status.new { "new" } }
                @if let Some(values) = notes::unknown_reads(outcome) { " " span.status.new { (values.mark()) } }
            }
            td { @if let Some(finding) = finding { span.code { (finding.code) } } }
            (bytes(figure("peak_allocated")))
            (change(figure("peak_allocated")))
            (bytes(figure("growth")))
            td.n { (limit(finding, &rows)) }
        }
    }
}

/// A test without a complete record has no figure, which differs from zero bytes.
fn bytes(row: Option<&FigureRow>) -> Markup {
    match row {
        Some(row) => html! { td.n data-value=(row.now) title=(both(row.now)) { (Size(row.now)) } },
        None => html! { td.n data-value="-1" { span.none { "\u{2014}" } } },
    }
}

fn change(row: Option<&FigureRow>) -> Markup {
    let known = row.and_then(|row| Some((row.now, row.then?)));
    let Some((now, then)) = known else {
        return html! { td.n data-value="0" { span.none { "\u{2014}" } } };
    };
    let difference = i128::from(now) - i128::from(then);
    let (class, sign) = match difference {
        0 => return html! { td.n data-value="0" { "0 B" } },
        1.. => ("more", '+'),
        _ => ("less", '\u{2212}'),
    };
    let share = difference as f64 / then.max(1) as f64 * 100.0;
    html! {
        td.n data-value=(difference) {
            span.(class) { (sign) (Size(now.abs_diff(then))) " (" (format!("{share:+.1} %")) ")" }
        }
    }
}

fn is_count(finding: &Finding) -> bool {
    matches!(finding.code, Code::AllocationsLimit | Code::AllocationsRegression)
}

/// The limit of the finding or, without one, those of peak and growth.
fn limit(finding: Option<&Finding>, rows: &[FigureRow]) -> String {
    if let Some(limit) = finding.and_then(|finding| finding.limit) {
        let limit = match finding.is_some_and(is_count) {
            true => counted(limit, "allocation", "allocations"),
            false => Size(limit).to_string(),
        };
        return match finding.and_then(|finding| finding.baseline) {
            Some(_) => format!("{limit} (baseline and tolerance)"),
            None => limit,
        };
    }
    let of = |name: &str| rows.iter().find(|row| row.name == name)?.limit.clone();
    match (of("peak_allocated"), of("growth")) {
        (Some(peak), _) => format!("peak {peak}"),
        (None, Some(growth)) => format!("growth {growth}"),
        (None, None) => String::new(),
    }
}

/// A test that did not pass: its finding, the line, the cause, the remedy and the next command.
pub(super) fn failure(
    number: usize,
    task: &Task,
    outcome: &TestOutcome,
    sources: &Sources,
) -> Markup {
    let status = status_name(outcome.verdict.status);
    let findings = outcome.verdict.findings.iter();
    let mut findings: Vec<&Finding> =
        findings.filter(|finding| finding.code != Code::MissingBaseline).collect();
    // Bytes explain more than a number of allocations.
    findings.sort_by_key(|finding| is_count(finding));
    let next = commands::most_helpful(task, outcome, &sources.baselines_flag());
    let mut hints: Vec<&str> = findings.iter().filter_map(|it| it.hint.as_deref()).collect();
    // The command below says the same.
    let accepts = next.iter().any(|next| next.purpose == commands::ACCEPT);
    hints.retain(|hint| !(accepts && hint.contains("cargo memcheck accept")));
    hints.dedup();
    html! {
        li.failure.(status) {
            h3 { (name(number, task)) " " span.device { (task.leg.name()) } }
            @for finding in &findings { (self::finding(finding, outcome, sources)) }
            @for hint in hints { p { strong { "hint: " } (prose(hint)) } }
            @for (number, command) in next.iter().enumerate() { (self::command(number, command)) }
        }
    }
}

/// A text in which backticks mark code.
pub(super) fn prose(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    // Without a partner, a backtick is a character.
    if pieces.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (number, piece) in pieces.into_iter().enumerate() {
            @if number.is_multiple_of(2) { (piece) } @else { code { (piece) } }
        }
    }
}

fn finding(finding: &Finding, outcome: &TestOutcome, sources: &Sources) -> Markup {
    let source = |(file, line): (&str, u32)| {
        html! { @if let Some(source) = sources.line(file, line) { " " code.source { (source) } } }
    };
    let common = places::common_line(finding);
    // The baseline does not know which allocations are new.
    let is_known = finding.grown.is_empty() && finding.code != Code::AllocationsRegression;
    let first = places::first_line(finding).filter(|_| is_known);
    // The cause states it once for all of them.
    let is_new = finding.grown.iter().all(|holder| holder.then == 0);
    html! {
        p.message { span.code { (finding.code) } " " (prose(&headline(finding, outcome))) }
        @for holder in finding.grown.iter().take(MOST_GROWN) {
            p.place {
                @if let Some((file, line)) = places::line_of(holder) {
                    strong { "line: " } code { (file) ":" (line) } (source((file, line))) " "
                    @if is_new { "+" (Size(holder.now)) " " (holder.holder) }
                    @else { (findings::grown(&GrownHolder { place: None, ..holder.clone() })) }
                } @else {
                    (findings::grown(holder))
                }
            }
        }
        @if let Some(more) = finding.grown.len().checked_sub(MOST_GROWN).filter(|more| *more > 0) {
            p { "… " (counted(more as u64, "more place", "more places")) " grew" }
        }
        @if let Some((file, line)) = common {
            p.place {
                strong { "line: " } code { (file) ":" (line) } (source((file, line)))
                " allocates all memory that is kept"
            }
        }
        @if let (None, Some((file, line))) = (common, first) {
            p.place { strong { "line: " } code { (file) ":" (line) } (source((file, line))) }
        }
        @if let Some(cause) = &finding.cause {
            p { strong { "cause: " } (cause.title) br; strong { "remedy: " } (prose(&cause.remedy)) }
        } @else if let Some((cause, remedy)) = rise_of_peak(finding) {
            p { strong { "cause: " } (cause) br; strong { "remedy: " } (remedy) }
        }
    }
}

/// The cause and the remedy of a peak that rose, from the holders that are new or hold more. The
/// baseline has no call stacks, so no rule can name a habit of the program.
fn rise_of_peak(finding: &Finding) -> Option<(String, &'static str)> {
    let rises = |holder: &&GrownHolder| holder.now > holder.then;
    let (new, larger): (Vec<_>, Vec<_>) =
        finding.grown.iter().filter(rises).partition(|holder| holder.then == 0);
    let cause = match (new.len(), larger.len()) {
        (0, 0) => return None,
        (1, 0) => "this allocation is new, or its tensor lives longer than before".to_owned(),
        (new, 0) => {
            format!("these {new} allocations are new, or their tensors live longer than before")
        }
        (0, 1) => "this call site holds more memory at the peak than in the baseline".to_owned(),
        (new, larger) => format!(
            "these {} call sites hold more memory at the peak than in the baseline",
            new + larger
        ),
    };
    let remedy = match larger.as_slice() {
        [] => "remove the allocation, or drop its tensor before the peak",
        _ => "look for a larger shape, a wider dtype, or tensors that are dropped later",
    };
    Some((cause, remedy))
}

fn command(number: usize, next: &NextCommand) -> Markup {
    html! {
        p.command {
            strong { @if number == 0 { "next: " } @else { "or: " } }
            span.purpose { (next.purpose) ":" } " " code.copy { (next.command) }
        }
    }
}

/// The figures of a finding, as a person reads them. The view of the test has the exact bytes, the
/// blocks, and the iterations that confirm a leak.
fn headline(finding: &Finding, outcome: &TestOutcome) -> String {
    let size = |bytes: u64| Size(bytes).to_string();
    let Some(space) = &finding.space else { return first_line_of(finding) };
    let growth = outcome
        .report
        .as_ref()
        .and_then(|report| report.record.spaces.get(space).map(|measured| &measured.growth));
    let least = match growth {
        Some(Growth::Found { whole: false, .. }) => "at least ",
        _ => "",
    };
    match (finding.code, finding.bytes_per_iteration, finding.limit) {
        (Code::Leak, Some(rate), Some(limit)) => {
            format!("{space} grows by {least}{} per iteration (limit {})", size(rate), size(limit))
        }
        (Code::PeakRegression, None, _) => match (finding.baseline, finding.figure) {
            (Some(then), Some(now)) if now >= then => {
                let (more, then, now) = (size(now - then), size(then), size(now));
                format!("the peak of {space} rose by {more}, from {then} to {now}")
            }
            _ => first_line_of(finding),
        },
        _ => first_line_of(finding),
    }
}

fn first_line_of(finding: &Finding) -> String {
    finding.message.lines().next().unwrap_or_default().to_owned()
}

/// The titles of the columns; the script makes those with a kind sort the table.
pub(super) fn table(rows: &[Markup]) -> Markup {
    html! {
        div.wide {
            table #tests {
                caption.hidden { "All tests of the run" }
                thead {
                    tr {
                        th scope="col" data-sort="text" { "Test" }
                        th scope="col" data-sort="text" { "Device" }
                        th scope="col" data-sort="status" { "Result" }
                        th scope="col" data-sort="text" { "Finding" }
                        th.n scope="col" data-sort="number" { "Peak" }
                        th.n scope="col" data-sort="number" { "From baseline" }
                        th.n scope="col" data-sort="number" { "Growth" }
                        th.n scope="col" { "Limit" }
                    }
                }
                tbody { @for row in rows { (row) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn a_headline_has_binary_sizes_and_keeps_at_least() {
        let mut outcome = leaky();
        let finding = outcome.verdict.findings[0].clone();
        assert_eq!(finding.code, Code::Leak);
        let space = finding.space.unwrap();
        let exact = headline(&finding, &outcome);
        assert!(exact.starts_with(&format!("{space} grows by ")), "{exact}");
        assert!(!exact.contains(" B (") && exact.contains(" per iteration (limit "), "{exact}");
        let spaces = &mut outcome.report.as_mut().unwrap().record.spaces;
        let found = Growth::Found { whole: false, exact: false, iterations: 60 };
        spaces.get_mut(&space).unwrap().growth = found;
        let least = headline(&finding, &outcome);
        assert_eq!(least, exact.replace(" grows by ", " grows by at least "));
    }

    #[test]
    fn the_headline_of_a_peak_has_the_rise_first() {
        let finding = Finding {
            space: Some(memcheck_core::space::Space::Host),
            figure: Some(163_840),
            baseline: Some(98_304),
            ..Finding::new(Code::PeakRegression, "exact bytes")
        };
        let text = headline(&finding, &leaky());
        assert_eq!(text, "the peak of host rose by 64.0 KiB, from 96.0 KiB to 160.0 KiB");
        let fell = Finding { figure: Some(1), ..finding };
        assert_eq!(headline(&fell, &leaky()), "exact bytes");
    }

    #[test]
    fn a_peak_that_rose_has_its_cause_from_the_places_that_are_new_or_hold_more() {
        let holder = |then, now| GrownHolder { holder: "x".to_owned(), place: None, then, now };
        let text = |grown: Vec<GrownHolder>| {
            rise_of_peak(&Finding { grown, ..Finding::new(Code::PeakRegression, "") })
        };
        assert_eq!(text(Vec::new()), None);
        assert_eq!(text(vec![holder(5, 4)]), None);
        let (cause, remedy) = text(vec![holder(0, 4), holder(0, 1), holder(5, 4)]).unwrap();
        assert_eq!(cause, "these 2 allocations are new, or their tensors live longer than before");
        assert!(remedy.starts_with("remove the allocation"), "{remedy}");
        let (cause, remedy) = text(vec![holder(1, 4)]).unwrap();
        assert_eq!(cause, "this call site holds more memory at the peak than in the baseline");
        assert!(remedy.contains("a wider dtype"), "{remedy}");
        let (cause, _) = text(vec![holder(0, 4), holder(1, 4)]).unwrap();
        assert!(cause.starts_with("these 2 call sites hold more memory"), "{cause}");
    }
}
