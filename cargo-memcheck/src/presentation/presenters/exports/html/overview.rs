//! The first page of a report as plain HTML, which needs no script: cards with the counts, the tests
//! that did not pass, and a table of all tests.

use maud::{Markup, html};
use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::finding::{Code, Finding, GrownHolder, HeadLine};
use memcheck_core::judgement::headline;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::presentation::sizes;
use memcheck_core::presentation::text::ONE_KEEPS_IT;
use memcheck_core::size::{Size, counted, exact};

use super::commands::{self, NextCommand};
use super::data::{Sources, failed_output};
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::origin::RunOrigin;
use crate::presentation::presenters::{findings, panics, places};
use crate::presentation::tally::Tally;

/// More failures are in the table only.
pub(super) const MOST_FAILURES: usize = 100;
/// The last lines of a failed test's output; the view of the test has all of them.
const MOST_OUTPUT: usize = 12;
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
                // That no test has failed is known at the end only.
                @if count > 0 || name == "failed" && !tally.is_incomplete() {
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

/// Which run this is: commit, branch, date, devices, command and version.
pub(super) fn origin(run: &RunOrigin, devices: &[String]) -> Markup {
    let RunOrigin { project: _, commit, branch, lines: _, command, version, started } = run;
    html! {
        div.origin {
            @if let Some(commit) = commit { span { "commit " code { (commit.get(..12).unwrap_or(commit)) } } }
            @if let Some(branch) = branch { span { "branch " code { (branch) } } }
            span { (started.replace('T', " ").replace('Z', " UTC")) }
            @if !devices.is_empty() { span { "on " (devices.join(", ")) } }
            span { "memcheck " (version) }
            // One line, which opens.
            details.run { summary { code { (command) } } }
        }
    }
}

pub(super) fn link(number: usize, task: &Task) -> Markup {
    html! { a.test href={ "#t" (number) } { (breakable(task.name())) } }
}

/// A name that a browser breaks after `::` and `_` only, instead of inside a word.
fn breakable(name: &str) -> Markup {
    let pieces = name.split_inclusive("::").flat_map(|part| part.split_inclusive('_'));
    html! { @for piece in pieces { (piece) wbr; } }
}

/// A test that did not pass: a row that opens.
#[derive(Debug)]
pub(super) struct FailedTest {
    /// The title of the cause or, without one, the code of the finding.
    cause: String,
    status: &'static str,
    row: Markup,
    /// The findings with their lines, causes and remedies, and the next commands.
    body: Markup,
}

pub(super) fn failure(
    number: usize,
    task: &Task,
    outcome: &TestOutcome,
    sources: &Sources,
) -> FailedTest {
    let status = status_name(outcome.verdict.status);
    let findings = outcome.verdict.findings.iter();
    let findings =
        findings::folded(findings.filter(|finding| finding.code != Code::MissingBaseline));
    let next = commands::most_helpful(task, outcome, &sources.baselines_flag());
    let mut hints: Vec<&str> =
        findings.iter().filter_map(|it| it.finding.hint.as_deref()).collect();
    hints.dedup();
    let first = findings.first().map(|folded| folded.finding);
    let cause = first.map_or_else(String::new, |finding| match &finding.cause {
        Some(cause) => cause.title.clone(),
        None => finding.code.to_string(),
    });
    // The output of a test whose memory is at fault explains nothing.
    let about_memory = first.is_some_and(|finding| finding.code.is_about_memory());
    let output = failed_output(outcome).filter(|_| !about_memory);
    let lines = output.as_deref().unwrap_or_default();
    // A crash has its place above its message.
    let is_placed = findings.iter().any(|folded| folded.finding.crashed_at().is_some());
    let panic = panics::line(lines).filter(|_| !is_placed);
    let panic = panic.filter(|(file, line)| sources.line(file, *line).is_some());
    let lines = panics::without_repeats(lines, &outcome.verdict.findings);
    // A row that opens must not contain a link, which a screen reader could not reach.
    let row = html! {
        strong.name { (breakable(task.name())) } " " span.binary { (task.binary.id) } " "
        span.device { (task.leg.name()) }
        @if let Some(first) = first { " " span.brief { (prose(&headline(first, outcome))) } }
    };
    let body = html! {
        p.open { a.test href={ "#t" (number) } { "Open " (breakable(task.name())) } }
        @for folded in &findings {
            (self::finding(folded.finding, outcome, sources))
            @for also in &folded.consequences {
                p { "also " span.code { (also.code) } " " (prose(&headline(also, outcome))) }
            }
        }
        @if let Some((file, line)) = panic { p.place { (place("line", sources, file, line)) } }
        @for hint in hints { p { strong { "hint: " } (prose(hint)) } }
        @for (number, command) in next.iter().enumerate() { (self::command(number, command)) }
        @if !lines.is_empty() {
            p { strong { "output:" } @if lines.len() > MOST_OUTPUT { " the last lines" } }
            pre.output { (lines[lines.len().saturating_sub(MOST_OUTPUT)..].join("\n")) }
        }
    };
    FailedTest { cause, status, row, body }
}

/// More are closed at first, so that all of them fit on a screen.
const MOST_OPEN: usize = 4;

/// The failures by their cause. Those with a cause of their own follow the others.
pub(super) fn failures(all: &[FailedTest]) -> Markup {
    let mut causes: Vec<(&str, Vec<&FailedTest>)> = Vec::new();
    for failure in all {
        match causes.iter_mut().find(|(cause, _)| *cause == failure.cause) {
            Some((_, of)) => of.push(failure),
            None => causes.push((&failure.cause, vec![failure])),
        }
    }
    let (several, single): (Vec<_>, Vec<_>) = causes.into_iter().partition(|(_, of)| of.len() > 1);
    let others: Vec<&FailedTest> = single.into_iter().flat_map(|(_, of)| of).collect();
    let title_of_others = (!several.is_empty()).then_some("other causes");
    let groups = several.into_iter().map(|(cause, of)| (Some(cause), of));
    html! {
        @for (title, of) in groups.chain((!others.is_empty()).then_some((title_of_others, others))) {
            section.cause-group {
                @if let Some(title) = title {
                    h3 { (prose(title)) " " span.muted { (counted(of.len() as u64, "test", "tests")) } }
                }
                @for FailedTest { status, row, body, .. } in of {
                    details.failure.(status) open[all.len() <= MOST_OPEN] {
                        summary { (row) }
                        (body)
                    }
                }
            }
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

/// A line of the workspace, with a link and its text if they are known.
fn place(title: &str, sources: &Sources, file: &str, line: u32) -> Markup {
    let code = html! { code { (file) ":" (line) } };
    html! {
        strong { (title) ": " }
        @match sources.links().of(file, line) {
            Some(address) => a href=(address) { (code) },
            None => (code),
        }
        @if let Some(source) = sources.line(file, line) { " " code.source { (source) } }
    }
}

fn finding(finding: &Finding, outcome: &TestOutcome, sources: &Sources) -> Markup {
    let caller = places::caller(finding);
    // The baseline does not know which allocations are new.
    let is_known = finding.grown.is_empty() && finding.code != Code::AllocationsRegression;
    let crash = finding.crashed_at();
    let first = places::headline(finding).filter(|_| is_known && crash.is_none());
    // The cause states it once for all of them.
    let is_new = finding.grown.iter().all(GrownHolder::is_new);
    // Of an assertion, its two values, and of a crash, its callers.
    let further: Vec<&str> = match finding.code {
        Code::TestFailed | Code::Crashed => {
            finding.message.lines().skip(1).take(MOST_OUTPUT).collect()
        }
        _ => Vec::new(),
    };
    html! {
        @if let Some(HeadLine { file, line, function }) = crash {
            p.place { (place(if function.is_some() { "line" } else { "test" }, sources, file, *line)) }
        }
        p.message { span.code { (finding.code) } " " (prose(&headline(finding, outcome))) }
        @if !further.is_empty() { pre.output { (further.join("\n")) } }
        @for holder in finding.grown.iter().take(MOST_GROWN) {
            p.place {
                @if let Some((file, line)) = places::line_of(holder) {
                    (place("line", sources, file, line)) " "
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
        @if let Some((file, line)) = first {
            p.place {
                (place("line", sources, file, line))
                @if caller.is_some() { " calls the lines that allocate the kept memory" }
            }
        }
        (callers(finding, sources))
        @if let Some(cause) = &finding.cause {
            p { strong { "cause: " } (cause.title) br; strong { "remedy: " } (prose(&cause.remedy)) }
        } @else if let Some((cause, remedy)) = rise_of_peak(finding) {
            p { strong { "cause: " } (cause) br; strong { "remedy: " } (remedy) }
        }
    }
}

/// The lines around the headline that can keep the memory.
fn callers(finding: &Finding, sources: &Sources) -> Markup {
    let callers = headline::callers(finding);
    html! {
        @for HeadLine { file, line, .. } in &callers {
            p.place { (place("called from", sources, file, *line)) }
        }
        @if !callers.is_empty() { p { (ONE_KEEPS_IT) } }
    }
}

/// The cause and the remedy of a peak that rose, from the holders that are new or hold more. The
/// baseline has no call stacks, so no rule can name a habit of the program.
fn rise_of_peak(finding: &Finding) -> Option<(String, &'static str)> {
    let rises = |holder: &&GrownHolder| holder.now > holder.then;
    let (new, larger): (Vec<_>, Vec<_>) =
        finding.grown.iter().filter(rises).partition(|holder| holder.is_new());
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
            let [rate, limit] = sizes::apart(rate, limit);
            format!("{space} grows by {least}{rate} per iteration (limit {limit})")
        }
        (Code::PeakRegression, None, _) => risen(finding, &format!("the peak of {space}"))
            .unwrap_or_else(|| first_line_of(finding)),
        (Code::GrowthRegression, ..) => {
            risen(finding, &format!("the growth of {space} per iteration"))
                .unwrap_or_else(|| first_line_of(finding))
        }
        _ => first_line_of(finding),
    }
}

/// The rise of a figure from its baseline. The message of a figure of a phase names the phase.
fn risen(finding: &Finding, name: &str) -> Option<String> {
    let (then, now) = (finding.baseline?, finding.figure?);
    if finding.phase.is_some() || now < then {
        return None;
    }
    let (more, [then, now]) = (Size(now - then), sizes::apart(then, now));
    Some(format!("{name} rose by {more}, from {then} to {now}"))
}

fn first_line_of(finding: &Finding) -> String {
    finding.message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn a_name_breaks_after_its_separators_only() {
        let broken = breakable("leaks::kept_in_a<T>").into_string();
        assert_eq!(broken, "leaks::<wbr>kept_<wbr>in_<wbr>a&lt;T&gt;<wbr>");
    }

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
    fn a_crash_has_its_place_above_its_message_and_its_callers_below() {
        let mut outcome = leaky();
        let at = HeadLine { file: "a.rs".to_owned(), line: 2, function: Some("a".to_owned()) };
        let message = "SIGSEGV (signal 11) ended the process\ncalled from a.rs:9 (b)";
        let crash = Finding { keeps_at: Some(at.clone()), ..Finding::new(Code::Crashed, message) };
        outcome.output.stderr = "thread 'a' panicked at b.rs:20:5:\nthe end".to_owned();
        let card = |finding: &Finding| {
            let mut outcome = outcome.clone();
            outcome.verdict.findings = vec![finding.clone()];
            let sources = Sources::default();
            super::failure(1, &crate::discovery::task::example::task(), &outcome, &sources)
                .body
                .into_string()
        };
        let whole = card(&crash);
        let order =
            ["line: </strong><code>a.rs:2", "SIGSEGV", "called from a.rs:9", "next: ", "the end"];
        let found = order.map(|part| whole.find(part).unwrap_or_else(|| panic!("{part}: {whole}")));
        assert!(found.is_sorted(), "{found:?} {whole}");
        assert_eq!(whole.matches("class=\"place\"").count(), 1, "{whole}");
        let unknown = HeadLine { function: None, ..at };
        let of_test = card(&Finding { keeps_at: Some(unknown), ..crash });
        assert!(of_test.contains("test: </strong><code>a.rs:2"), "{of_test}");
    }

    #[test]
    fn a_run_that_was_cut_short_has_no_card_without_failures() {
        let cut = Tally { passed: 3, interrupted: true, ..Tally::default() };
        assert!(!cards(&cut).into_string().contains("\"failed\""));
        let failed = Tally { failed: 1, ..cut.clone() };
        assert!(cards(&failed).into_string().contains("\"failed\""));
        assert!(cards(&Tally::default()).into_string().contains("\"failed\""));
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
        let grown = Finding { bytes_per_iteration: finding.figure, ..finding.clone() };
        let text = headline(&Finding { code: Code::GrowthRegression, ..grown }, &leaky());
        assert_eq!(
            text,
            "the growth of host per iteration rose by 64.0 KiB, from 96.0 KiB to 160.0 KiB"
        );
        let phase = Some("decode".to_owned());
        for other in [Finding { figure: Some(1), ..finding.clone() }, Finding { phase, ..finding }]
        {
            assert_eq!(headline(&other, &leaky()), "exact bytes");
        }
    }

    #[test]
    fn a_peak_that_rose_has_its_cause_from_the_places_that_are_new_or_hold_more() {
        let holder =
            |then, now| GrownHolder { holder: "x".to_owned(), then, now, ..GrownHolder::default() };
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
        let unlisted = GrownHolder { is_unlisted: true, ..holder(0, 4) };
        let (cause, _) = text(vec![unlisted]).unwrap();
        assert_eq!(cause, "this call site holds more memory at the peak than in the baseline");
        let (cause, _) = text(vec![holder(0, 4), holder(1, 4)]).unwrap();
        assert!(cause.starts_with("these 2 call sites hold more memory"), "{cause}");
    }
}
