//! The card of a test that did not pass, on the first page of a report.

use maud::{Markup, html};
use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::finding::{Code, Finding, GrownHolder, HeadLine, Site};
use memcheck_core::judgement::rise::Rise;
use memcheck_core::presentation::by_line::{by_line, sites_by_line};
use memcheck_core::presentation::sizes;
use memcheck_core::presentation::text::{KEPT_THROUGH, ONE_KEEPS_IT, relation};
use memcheck_core::size::{Size, counted};

use super::commands::{self, NextCommand};
use super::data::{Snippet, Sources};
use super::ending::{self, Ending};
use super::markup::{breakable, link, prose};
use super::rise::risen;
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::{findings, places};

/// The last lines of a failed test's output; the view of the test has all of them.
const MOST_OUTPUT: usize = 12;
/// Lines with holders at the peak that grew; the view of the test has all of them.
const MOST_GROWN: usize = 4;
/// Holders of one line that are named.
const MOST_NAMED: usize = 3;

/// A test that did not pass: a row that opens.
#[derive(Debug)]
pub(super) struct FailedTest {
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
    let lines = if about_memory { Vec::new() } else { ending::output(outcome) };
    // A row that opens must not contain a link, which a screen reader could not reach.
    let row = html! {
        strong.name { (breakable(task.name())) } " " span.binary { (task.binary.id) } " "
        span.device { (task.leg.name()) }
        @if let Some(first) = first { " " span.brief { (prose(&headline(first, outcome))) } }
    };
    let body = html! {
        p.open { (address) }
        @for folded in &findings {
            (self::finding(folded.finding, outcome, sources))
            @for also in &folded.consequences {
                p { "also " span.code { (also.code) } " " (prose(&headline(also, outcome))) }
            }
        }
        @for hint in hints { p { strong { "hint: " } (prose(hint)) } }
        @for (number, command) in next.iter().enumerate() { (self::command(number, command)) }
        @if !lines.is_empty() {
            p { strong { "output:" } @if lines.len() > MOST_OUTPUT { " the last lines" } }
            pre.output { (lines[lines.len().saturating_sub(MOST_OUTPUT)..].join("\n")) }
        }
    };
    FailedTest { cause, status, row, body }
}

/// The link of a card to the view of its test.
pub(super) fn open(number: usize, fragment: &str, task: &Task) -> Markup {
    link(number, fragment, &html! { "Open " (breakable(task.name())) })
}

/// A line of the workspace, with a link if its address is known.
fn place(title: &str, sources: &Sources, file: &str, line: u32) -> Markup {
    let code = html! { code { (file) ":" (line) } };
    html! {
        strong { (title) ": " }
        @match sources.links().of(file, line) {
            Some(address) => a href=(address) { (code) },
            None => (code),
        }
    }
}

/// The same with the text of the line.
fn place_with_text(title: &str, sources: &Sources, file: &str, line: u32) -> Markup {
    html! {
        (place(title, sources, file, line))
        @if let Some(text) = sources.line(file, line) { " " code.source { (text) } }
    }
}

fn finding(finding: &Finding, outcome: &TestOutcome, sources: &Sources) -> Markup {
    let Ending { title, at, callers, further, last_output } = Ending::new(finding, outcome);
    let is_kept = finding.caller().is_some();
    html! {
        p.message { span.code { (finding.code) } " " (prose(&headline(finding, outcome))) }
        @if (finding.code == Code::TestFailed || finding.code.ended_process()) && !further.is_empty() {
            pre.output { (further[..further.len().min(MOST_OUTPUT)].join("\n")) }
        }
        (grown(finding, sources))
        @match &at {
            Some(HeadLine { file, line, .. }) if is_kept => (place_with_source(title, sources, (file, *line), "")),
            Some(HeadLine { file, line, .. }) => p.place { (place_with_text(title, sources, file, *line)) },
            None => (allocated(finding, sources)),
        }
        @for HeadLine { file, line, .. } in &callers {
            p.place { (place_with_text("called from", sources, file, *line)) }
        }
        @if is_kept && !callers.is_empty() { p { (ONE_KEEPS_IT) } }
        @if let Some(HeadLine { file, line, .. }) = &finding.kept_through {
            p.place { (place_with_text(KEPT_THROUGH[0].trim_end(), sources, file, *line)) (KEPT_THROUGH[1]) }
        }
        @if let Some(last) = last_output { p.last { strong { "last output: " } code { (last) } } }
        @if let Some(cause) = &finding.cause {
            p { strong { "cause: " } (cause.title) br; strong { "remedy: " } (prose(&cause.remedy)) }
        } @else if let Some(Rise { cause, remedy, .. }) = finding.reason() {
            p { strong { "cause: " } (cause) br; strong { "remedy: " } (remedy) }
        }
    }
}

/// The lines with holders at the peak that grew, with the sum of each.
fn grown(finding: &Finding, sources: &Sources) -> Markup {
    let lines = by_line(&finding.grown, |holder| holder.place.as_deref());
    // The cause states it once for all of them.
    let is_new = finding.grown.iter().all(GrownHolder::is_new);
    html! {
        @for holders in lines.iter().take(MOST_GROWN) {
            p.place {
                @match places::line_of(holders[0]) {
                    Some((file, line)) => {
                        (place_with_text("allocated at", sources, file, line)) " " (rise_of(holders, is_new))
                    }
                    None => (rise_of(holders, is_new)),
                }
            }
        }
        @if let Some(more) = lines.len().checked_sub(MOST_GROWN).filter(|more| *more > 0) {
            p { "… " (counted(more as u64, "more line", "more lines")) " hold more" }
        }
    }
}

/// `+64.0 KiB softmax [8,128] f32`, or the sum of several and their names.
fn rise_of(holders: &[&GrownHolder], is_new: bool) -> String {
    match holders {
        [holder] if is_new => format!("+{} {}", Size(holder.now), holder.holder),
        [holder] => findings::grown(&GrownHolder { place: None, ..(*holder).clone() }),
        several => {
            let sum = several.iter().map(|it| it.now.saturating_sub(it.then)).sum();
            let names: Vec<&str> =
                several.iter().take(MOST_NAMED).map(|it| it.holder.as_str()).collect();
            let more = several.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("+{} in all: {}{more}", Size(sum), names.join(", "))
        }
    }
}

/// The line of the heaviest call site, unless the lines that grew are shown.
fn allocated(finding: &Finding, sources: &Sources) -> Markup {
    let line_of = |site: &Site| Some((site.file.clone()?, site.line?));
    let lines = sites_by_line(&finding.sites, line_of);
    let mut lines = lines.into_iter().filter_map(|sites| line_of(sites[0]));
    // A headline without call sites is that of an earlier version.
    let of_headline = || places::headline(finding).map(|(file, line)| (file.to_owned(), line));
    let is_crash = finding.stopped_at().is_some();
    let first = (finding.grown.is_empty() && !is_crash).then(|| lines.next().or_else(of_headline));
    let others = lines.count() as u64;
    let others =
        (others > 0).then(|| format!(" and {}", counted(others, "other line", "other lines")));
    let title = match relation(finding.code).trim_end() {
        "" => "line",
        relation => relation,
    };
    html! {
        @if let Some((file, line)) = first.flatten() {
            (place_with_source(title, sources, (&file, line), &others.unwrap_or_default()))
        }
    }
}

/// A line of the workspace with the source around it. `after` is written behind the line.
fn place_with_source(title: &str, sources: &Sources, at: (&str, u32), after: &str) -> Markup {
    let (file, line) = at;
    html! {
        p.place { (place(title, sources, file, line)) (after) }
        @if let Some(snippet) = sources.snippet(file, line) { (self::snippet(&snippet, line)) }
    }
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

    fn card(outcome: &TestOutcome, sources: &Sources) -> String {
        let task = crate::discovery::task::example::task();
        super::failure(&html! {}, &task, outcome, sources).body.into_string()
    }

    #[track_caller]
    fn assert_order(card: &str, parts: &[&str]) {
        let found =
            parts.iter().map(|part| card.find(part).unwrap_or_else(|| panic!("{part}: {card}")));
        assert!(found.is_sorted(), "{parts:?}: {card}");
    }

    #[test]
    fn a_crash_has_its_message_line_caller_and_last_output_and_then_the_command() {
        let mut outcome = leaky();
        let at = HeadLine { file: "a.rs".to_owned(), line: 2, function: Some("a".to_owned()) };
        let message = "SIGSEGV (signal 11) ended the process\ncalled from a.rs:9 (b)";
        let crash = Finding { keeps_at: Some(at.clone()), ..Finding::new(Code::Crashed, message) };
        outcome.output.stderr = "thread 'a' panicked at b.rs:20:5:\nwhy\nthe end".to_owned();
        outcome.verdict.findings = vec![crash.clone()];
        let whole = card(&outcome, &Sources::default());
        let order = [
            "SIGSEGV",
            "line: </strong><code>a.rs:2",
            "called from: </strong><code>a.rs:9",
            "last output: </strong><code>the end",
            "next: ",
            "<pre class=\"output\">",
        ];
        assert_order(&whole, &order);
        assert_eq!(whole.matches("class=\"place\"").count(), 2, "{whole}");
        let unknown = HeadLine { function: None, ..at };
        outcome.verdict.findings = vec![Finding { keeps_at: Some(unknown), ..crash }];
        let of_test = card(&outcome, &Sources::default());
        assert!(of_test.contains("test: </strong><code>a.rs:2"), "{of_test}");
    }

    #[test]
    fn kept_memory_has_the_lines_that_allocate_it_and_the_source_of_the_line_that_called_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("a.rs"),
            "fn step() {\n    forward();\n    backward();\n}\n",
        )
        .unwrap();
        let sources =
            Sources::new(memcheck_core::judgement::location::Roots::new(folder.path(), None));
        let mut outcome = leaky();
        let site =
            |line| Site { file: Some("a.rs".to_owned()), line: Some(line), ..Site::default() };
        let leak =
            Finding { sites: vec![site(2), site(3), site(2)], ..Finding::new(Code::Leak, "why") };
        outcome.verdict.findings = vec![leak.clone()];
        let own = card(&outcome, &sources);
        let source =
            "<mark class=\"line\"><span class=\"number\">    2</span>     forward();</mark>";
        let order = [
            "allocated at: </strong><code>a.rs:2</code> and 1 other line",
            "<pre class=\"snippet\"",
            source,
        ];
        assert_order(&own, &order);
        assert!(!own.contains("called from"), "{own}");
        let at = |line| Some(HeadLine { file: "a.rs".to_owned(), line, function: None });
        let called = Finding { keeps_at: at(1), kept_through: at(3), ..leak };
        outcome.verdict.findings = vec![called];
        let of_caller = card(&outcome, &sources);
        let order = [
            "allocated in calls at: </strong><code>a.rs:1",
            "<pre class=\"snippet\"",
            "kept through the result of: </strong><code>a.rs:3",
            "the last kept tensor of an iteration",
        ];
        assert_order(&of_caller, &order);
        assert_eq!(of_caller.matches("<pre class=\"snippet\"").count(), 1, "{of_caller}");
    }

    #[test]
    fn holders_of_one_line_are_one_entry_with_their_sum() {
        let holder = |name: &str, line: u32, now| GrownHolder {
            holder: name.to_owned(),
            place: Some(format!("a.rs:{line}")),
            now,
            ..GrownHolder::default()
        };
        let all =
            [holder("add", 2, 16 << 20), holder("ones", 3, 12 << 20), holder("relu", 2, 16 << 20)];
        let grown = Finding { grown: all.to_vec(), ..Finding::new(Code::PeakRegression, "") };
        let mut outcome = leaky();
        outcome.verdict.findings = vec![grown];
        let card = card(&outcome, &Sources::default());
        let line = "allocated at: </strong><code>a.rs:2</code> +32.0 MiB in all: add, relu</p>";
        assert_order(&card, &[line, "<code>a.rs:3</code> +12.0 MiB ones</p>", "remedy: "]);
        assert_eq!(card.matches("a.rs:2").count(), 1, "{card}");
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
}
