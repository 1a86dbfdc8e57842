//! The card of a test that did not pass, on the first page of a report.

use maud::{Markup, html};
use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::finding::{Code, Finding, HeadLine, Site};
use memcheck_core::judgement::rise::Rise;
use memcheck_core::presentation::by_line::sites_by_line;
use memcheck_core::presentation::sizes;
use memcheck_core::presentation::text::{ONE_KEEPS_IT, kept_through, relation};
use memcheck_core::size::counted;

use super::change_table;
use super::changes::Changes;
use super::commands::{self, NextCommand};
use super::data::{Snippet, Sources};
use super::ending::{self, Ending, Extent};
use super::markup::{self, breakable, link, linked, prose};
use super::rise::risen;
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::findings::{self, Folded};
use crate::presentation::presenters::kinds::FailureKind;
use crate::presentation::presenters::{brief, places};

/// The last lines of a failed test's output; the view of the test has all of them.
const MOST_OUTPUT: usize = 12;

/// A test that did not pass: a row that opens.
#[derive(Debug)]
pub(super) struct FailedTest {
    pub(super) kind: FailureKind,
    /// The title of the cause or, without one, the code of the finding.
    pub(super) cause: String,
    pub(super) status: &'static str,
    pub(super) row: Markup,
    /// The findings with their lines, causes and remedies, and the next commands.
    pub(super) body: Markup,
}

/// `address` is a link to the view of the test.
pub(super) fn failure(
    address: &Markup,
    task: &Task,
    outcome: &TestOutcome,
    sources: &Sources,
) -> FailedTest {
    let status = outcome.verdict.status.name();
    let findings = folded(outcome);
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
    let lines = if about_memory { Vec::new() } else { ending::output(outcome) };
    // A row that opens must not contain a link, which a screen reader could not reach.
    let row = html! {
        strong.name { (breakable(task.name())) } " " span.binary { (task.binary.id) } " "
        span.device { (task.leg.name()) }
        @if let Some(first) = first { (brief_of(first, task, outcome)) }
    };
    // Below the remedy of the first finding.
    let advice = html! {
        @for hint in hints { p.hinted { strong { "hint: " } (prose(hint)) } }
        @for (number, command) in next.iter().enumerate() { (self::command(number, command)) }
    };
    let body = html! {
        p.open { (address) }
        @for (number, folded) in findings.iter().enumerate() {
            (answer(folded.finding, outcome, sources))
            @if number == 0 { (advice) }
            (support(folded.finding, sources))
            @for also in &folded.consequences {
                p { "also " span.code { (also.code) } " " (prose(&headline(also, outcome))) }
            }
        }
        @if findings.is_empty() { (advice) }
        @if !lines.is_empty() {
            p { strong { "output:" } @if lines.len() > MOST_OUTPUT { " the last lines" } }
            pre.output { (lines[lines.len().saturating_sub(MOST_OUTPUT)..].join("\n")) }
        }
    };
    FailedTest { kind: kind(outcome), cause, status, row, body }
}

/// The findings of a card: those that fail the test or, without one, the remarks. A test without a
/// baseline is marked in the table.
fn folded(outcome: &TestOutcome) -> Vec<Folded<'_>> {
    let all = || outcome.verdict.findings.iter().filter(|it| it.code != Code::MissingBaseline);
    let fails = |finding: &&Finding| findings::is_denied(finding, &outcome.verdict);
    match all().any(|finding| fails(&finding)) {
        true => findings::folded(all().filter(fails)),
        false => findings::folded(all()),
    }
}

/// The group of a test that did not pass.
pub(super) fn kind(outcome: &TestOutcome) -> FailureKind {
    let first = folded(outcome).first().map(|folded| folded.finding.code);
    FailureKind::of(first.unwrap_or(Code::MissingBaseline))
}

/// The finding in one line, for a card that is closed: its code, the line to look at, its figures and
/// its cause.
fn brief_of(finding: &Finding, task: &Task, outcome: &TestOutcome) -> Markup {
    let Ending { title, is_test, at, last_output, .. } = Ending::new(finding, outcome);
    let of_ending = || at.filter(|_| !is_test).map(|HeadLine { file, line, .. }| (file, line));
    let owned = |(file, line): (&str, u32)| (file.to_owned(), line);
    let of_grown = || places::grown(finding).next().map(owned);
    let of_sites = || allocated_lines(finding).into_iter().next();
    let of_keeper = || brief::kept_through(finding);
    let found = of_keeper().or_else(of_ending).or_else(of_grown).or_else(of_sites);
    let cause = finding.cause.as_ref().map(|cause| cause.title.clone());
    let cause = cause.or_else(|| finding.reason().map(|rise| rise.cause));
    html! {
        span.brief {
            span.code { (finding.code) } " "
            @match &found {
                Some((file, line)) => {
                    @if finding.iterates { (title) " " }
                    code.at { (file) ":" (line) }
                },
                None => span.at { "the test at " code { (task.subject.file().display()) ":" (task.subject.line()) } },
            }
            " " (prose(&headline(finding, outcome)))
            @if let Some(cause) = cause { "; " strong { "cause: " } (prose(&cause)) }
            @else if let Some(last) = last_output { "; " strong { "last output: " } code { (last) } }
            @if let Some(remedy) = remedy_of(finding) { span.fix { strong { "fix: " } (prose(&remedy)) } }
        }
    }
}

/// The remedy of a leak or of a rise. The style shortens it to the room that its line has.
fn remedy_of(finding: &Finding) -> Option<String> {
    let cause = finding.cause.as_ref().map(|cause| cause.remedy.clone());
    cause.or_else(|| finding.reason().map(|rise| rise.remedy))
}

/// The link of a card to the view of its test.
pub(super) fn open(number: usize, fragment: &str, task: &Task) -> Markup {
    link(number, fragment, &html! { "Open " (breakable(task.name())) })
}

/// A line of the workspace after its title.
fn place(title: &str, sources: &Sources, file: &str, line: u32) -> Markup {
    html! { strong { (title) ": " } (linked(sources, file, line)) }
}

/// The same with the text of the line.
fn place_with_text(title: &str, sources: &Sources, file: &str, line: u32) -> Markup {
    html! {
        (place(title, sources, file, line))
        @if let Some(text) = sources.line(file, line) { " " (markup::source(&text)) }
    }
}

/// The message, the line to look at, the cause and the remedy.
fn answer(finding: &Finding, outcome: &TestOutcome, sources: &Sources) -> Markup {
    let Ending { title, is_test, at, extent, callers, further, last_output } =
        Ending::new(finding, outcome);
    let is_kept = finding.caller().is_some();
    let keeper = kept_through(finding);
    // One line has its source: the one that keeps the memory, if it is known.
    let write: WritePlace = if keeper.is_some() { place_with_line } else { place_with_source };
    html! {
        p.message { span.code { (finding.code) } " " (prose(&headline(finding, outcome))) }
        @if (finding.code == Code::TestFailed || finding.code.ended_process()) && !further.is_empty() {
            pre.output { (further[..further.len().min(MOST_OUTPUT)].join("\n")) }
        }
        @if let Some(changes) = Changes::new(finding) { (change_table::table(&changes, sources)) }
        @if let Some((HeadLine { file, line, .. }, [before, after])) = keeper {
            (place_with_source(before.trim_end(), sources, (file, *line), after))
        }
        @match &at {
            Some(HeadLine { file, line, .. }) if is_test => p { (place(title, sources, file, *line)) },
            Some(HeadLine { file, line, .. }) if is_kept => (write(title, sources, (file, *line), "")),
            Some(HeadLine { file, line, .. }) if finding.iterates => {
                p.place { (place(title, sources, file, *line)) }
                (source_of(sources, (file, *line), extent))
            },
            Some(HeadLine { file, line, .. }) => p.place { (place_with_text(title, sources, file, *line)) },
            None if keeper.is_some() => {},
            None => (allocated(finding, sources, write)),
        }
        @for HeadLine { file, line, .. } in &callers {
            p.place { (place_with_text("called from", sources, file, *line)) }
        }
        @if is_kept && !callers.is_empty() { p { (ONE_KEEPS_IT) } }
        @if let Some(last) = last_output { p.last { strong { "last output: " } code { (last) } } }
        @if let Some(cause) = &finding.cause {
            p { strong { "cause: " } (cause.title) br; strong { "remedy: " } (prose(&cause.remedy)) }
        } @else if let Some(Rise { cause, remedy, .. }) = finding.reason() {
            p { strong { "cause: " } (prose(&cause)) br; strong { "remedy: " } (prose(&remedy)) }
        }
    }
}

/// What supports the answer: the evidence of the cause, and the call sites of memory that another line keeps.
fn support(finding: &Finding, sources: &Sources) -> Markup {
    let has_keeper = kept_through(finding).is_some() && finding.caller().is_none();
    html! {
        @if let Some(evidence) = finding.evidence() { p.evidence { strong { "evidence: " } (prose(&evidence)) } }
        @if has_keeper { (allocated(finding, sources, place_with_line)) }
    }
}

/// The lines of the call sites, the heaviest first. A headline without call sites is that of an
/// earlier version.
fn allocated_lines(finding: &Finding) -> Vec<(String, u32)> {
    let line_of = |site: &Site| Some((site.file.clone()?, site.line?));
    let lines = sites_by_line(&finding.sites, line_of);
    let lines: Vec<_> = lines.into_iter().filter_map(|sites| line_of(sites[0])).collect();
    if !lines.is_empty() || finding.stopped_at().is_some() {
        return lines;
    }
    let of_headline = places::headline(finding);
    of_headline.map(|(file, line)| (file.to_owned(), line)).into_iter().collect()
}

/// Writes a line of the workspace: its title, its place, and a text behind it.
type WritePlace = fn(&str, &Sources, (&str, u32), &str) -> Markup;

/// The line of the heaviest call site, unless the lines that changed are shown.
fn allocated(finding: &Finding, sources: &Sources, write: WritePlace) -> Markup {
    let mut lines = allocated_lines(finding).into_iter();
    let is_crash = finding.stopped_at().is_some();
    let first = (finding.grown.is_empty() && !is_crash).then(|| lines.next());
    let others = lines.count() as u64;
    let others =
        (others > 0).then(|| format!(" and {}", counted(others, "other line", "other lines")));
    let title = match relation(finding.code).trim_end() {
        "" => "line",
        relation => relation,
    };
    html! {
        @if let Some((file, line)) = first.flatten() {
            (write(title, sources, (&file, line), &others.unwrap_or_default()))
        }
    }
}

/// A line of the workspace with its text. `after` is written behind the line.
fn place_with_line(
    title: &str,
    sources: &Sources,
    (file, line): (&str, u32),
    after: &str,
) -> Markup {
    html! { p.place { (place_with_text(title, sources, file, line)) (after) } }
}

/// The same with the source around it.
fn place_with_source(title: &str, sources: &Sources, at: (&str, u32), after: &str) -> Markup {
    let (file, line) = at;
    html! {
        p.place { (place(title, sources, file, line)) (after) }
        (source_of(sources, at, Extent::Around))
    }
}

fn source_of(sources: &Sources, (file, line): (&str, u32), extent: Extent) -> Markup {
    let snippet = sources.snippet(file, line, extent);
    snippet.map_or_else(|| html! {}, |snippet| self::snippet(&snippet, line))
}

/// The source around a line, which is marked, as the script shows it in the view of a test.
fn snippet(Snippet { place, first, lines }: &Snippet, marked: u32) -> Markup {
    let indents = lines.iter().filter(|text| !text.trim().is_empty());
    let indent = indents.map(|text| text.len() - text.trim_start().len()).min().unwrap_or(0);
    let line = |number: usize, text: &str| {
        let text = html! {
            span.number { (format!("{number:>5}")) } " " (text.get(indent..).unwrap_or_default())
        };
        match number == marked as usize {
            true => html! { mark.line { (text) } },
            false => html! { code.line { (text) } },
        }
    };
    html! {
        pre.snippet tabindex="0" aria-label={ "Source at " (place) } {
            @for (index, text) in lines.iter().enumerate() { (line(first + index, text)) }
        }
    }
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

fn first_line_of(finding: &Finding) -> String {
    finding.message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
