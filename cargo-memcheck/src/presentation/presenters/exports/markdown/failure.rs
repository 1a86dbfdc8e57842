//! The section of a test that did not pass: what happened, the line, the cause, and the next command.
//! Call sites are folded.

use memcheck_core::judgement::finding::{Class, Code, Finding, GrownHolder, Site};
use memcheck_core::presentation::text::{self, LinePart};

use super::inline::{code, fenced, message};
use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::exports::html::failed_output;
use crate::presentation::presenters::findings::{self, Folded};
use crate::presentation::presenters::links::SourceLinks;
use crate::presentation::presenters::panics::{PanicLine, PanicPlace};
use crate::presentation::presenters::places::FindingPlaces;
use crate::presentation::presenters::source_lines::SourceLines;
use crate::presentation::presenters::{brief, next_step, panics, places};
use crate::system::escape;

/// The lines of the output that are shown.
const MOST_OUTPUT: usize = 10;
/// The holders of a peak that are shown, of those that grew and of those that shrank.
const MOST_HOLDERS: usize = 3;

/// Everything below the title of a test.
pub(super) struct Section<'a> {
    pub(super) task: &'a Task,
    pub(super) outcome: &'a TestOutcome,
    pub(super) links: &'a SourceLinks,
    pub(super) places: &'a FindingPlaces,
    pub(super) sources: &'a SourceLines,
    pub(super) baselines: &'a [String],
}

impl Section<'_> {
    pub(super) fn text(&self) -> String {
        let findings = &self.outcome.verdict.findings;
        let all = findings::folded(findings);
        let mut parts: Vec<String> = all.iter().map(|folded| self.finding(folded)).collect();
        if !findings.iter().any(findings::is_end) {
            parts.extend(self.output());
        }
        parts.push(self.next());
        parts.iter().filter(|part| !part.is_empty()).map(|part| format!("{part}\n\n")).collect()
    }

    fn finding(&self, Folded { finding, consequences }: &Folded<'_>) -> String {
        let mut lines = finding.message.lines();
        let first = lines.next().unwrap_or_default();
        // Bookkeeping is less than a failure.
        let mark = if finding.code.row().class == Class::Bookkeeping { "" } else { "**" };
        let mut text = format!("{mark}{}:{mark} {}\n", finding.code, message(first));
        // The lines of a crash and of an error are in the list, with the innermost first.
        let (frames, further): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| finding.code.cut_it_short() && panics::frame(line).is_some());
        let further = &further[..further.len().min(MOST_OUTPUT)];
        if !further.is_empty() {
            text.push_str(&format!("\n{}\n", fenced(&further.join("\n"))));
        }
        let mut items = self.lines(finding, &frames.join("\n"));
        self.add_source(finding, &mut items);
        if let Some(cause) = &finding.cause {
            items.push(format!("cause: {} ({})", message(&cause.title), code(&cause.code)));
        }
        items.extend(finding.evidence().map(|it| format!("evidence: {}", message(&it))));
        if let Some(cause) = &finding.cause {
            items.push(format!("remedy: {}", message(&cause.remedy)));
        } else if let Some(rise) = finding.reason() {
            items.push(format!("cause: {}", message(&rise.cause)));
            items.push(format!("remedy: {}", message(&rise.remedy)));
        }
        let hint = finding.hint.iter().map(|hint| format!("hint: {}", message(hint)));
        let also = |it: &&Finding| format!("also {}: {}", it.code, message(&it.message));
        let others: Vec<String> = hint.chain(consequences.iter().map(also)).collect();
        match self.output().filter(|_| findings::is_end(finding)) {
            Some(output) => {
                text.push_str(&format!("{}\n{output}\n{}", list(&items), list(&others)));
            }
            None => text.push_str(&list(&[items, others].concat())),
        }
        text.push_str(&call_sites(finding));
        text.trim_end().to_owned()
    }

    /// The lines to look at, each with a link if the remote is known.
    fn lines(&self, finding: &Finding, frames: &str) -> Vec<String> {
        let changed = self.changed(finding);
        if !changed.is_empty() {
            return changed;
        }
        let shown = |relation: &str, at: &PanicLine| {
            let of = at.function.as_ref().map(|function| format!(" of {}", code(function)));
            format!("{relation} {}{}", self.linked(&at.file, at.line), of.unwrap_or_default())
        };
        let mut callers = panics::frames(frames);
        let panic = panicked(self.outcome).filter(|_| finding.code == Code::TestFailed);
        let line = match panic {
            Some(panic) => {
                callers.splice(.., panic.callers);
                Some(panic.line)
            }
            None if finding.code == Code::TestFailed && !callers.is_empty() => {
                Some(callers.remove(0))
            }
            None => None,
        };
        let called = callers.iter().map(|caller| shown("called from", caller));
        if let Some(line) = line {
            return std::iter::once(shown("line:", &line)).chain(called).collect();
        }
        let Some((file, line)) = places::headline(finding) else {
            return self.of_test().into_iter().chain(called).collect();
        };
        let of_line = |site: &&Site| site.file.as_deref() == Some(file) && site.line == Some(line);
        let site = finding.sites.iter().find(of_line);
        let relation = match (places::caller(finding), site) {
            (Some(_), _) => text::CALLED,
            (None, Some(_)) => text::relation(finding.code),
            (None, None) => "",
        };
        let is_of_test = finding.stopped_at().is_some_and(|at| at.function.is_none());
        let relation = match relation {
            "" if finding.iterates => "iterates here: ",
            "" if is_of_test => "test: ",
            "" => "line: ",
            relation => relation,
        };
        let what = site.map(allocation).filter(|what| !what.is_empty());
        let stopped = finding.stopped_at().and_then(|at| at.function.as_ref());
        let of_stop = || stopped.map(|function| format!(" of {}", code(function)));
        let what = what.map(|what| format!(": {what}")).or_else(of_stop).unwrap_or_default();
        let line = format!("{relation}{}{what}", self.linked(file, line));
        let through = text::kept_through(finding).map(|(at, [before, after])| {
            format!("{before}{}{after}", self.linked(&at.file, at.line))
        });
        through.into_iter().chain([line]).chain(called).collect()
    }

    /// Adds the text of the program's line below it.
    fn add_source(&self, finding: &Finding, items: &mut [String]) {
        for (file, line) in brief::lines_with_source(finding, self.outcome) {
            let Some(text) = self.sources.line(&file, line) else { continue };
            let place = self.linked(&file, line);
            if let Some(item) = items.iter_mut().find(|item| item.contains(&place)) {
                item.push_str(&format!("\\\n  {}", code(&text)));
            }
        }
    }

    /// The holders of a peak that changed most, and the sum of all others.
    fn changed(&self, finding: &Finding) -> Vec<String> {
        let all = [&finding.grown, &finding.shrunk].into_iter();
        // The sum of one holder would only hide its line.
        let most = |all: &[GrownHolder]| match all.len() {
            of_all if of_all == MOST_HOLDERS + 1 => of_all,
            _ => MOST_HOLDERS,
        };
        let shown: Vec<&GrownHolder> = all.flat_map(|all| all.iter().take(most(all))).collect();
        let peaks = finding.baseline.zip(finding.figure).filter(|_| !shown.is_empty());
        let others =
            peaks.and_then(|(then, now)| GrownHolder::others(then, now, shown.iter().copied()));
        shown.iter().copied().chain(&others).map(|holder| self.holder(holder)).collect()
    }

    fn holder(&self, holder: &GrownHolder) -> String {
        let bytes = findings::grown(&GrownHolder { place: None, ..holder.clone() });
        match places::line_of(holder) {
            Some((file, line)) => {
                format!("line: {}: {}", self.linked(file, line), message(&bytes))
            }
            None => message(&bytes),
        }
    }

    /// The line of the test, of a finding without one.
    fn of_test(&self) -> Option<String> {
        let file = self.places.relative(self.task.subject.file());
        let place = self.linked(file.to_str()?, self.task.subject.line());
        file.is_relative().then(|| format!("test: {place}"))
    }

    pub(super) fn linked(&self, file: &str, line: u32) -> String {
        let place = code(&format!("{file}:{line}"));
        match self.links.of(file, line) {
            Some(address) => format!("[{place}]({address})"),
            None => place,
        }
    }

    /// The last lines of the output of a test whose memory is not at fault.
    fn output(&self) -> Option<String> {
        let findings = &self.outcome.verdict.findings;
        let about_memory = findings.first().is_some_and(|finding| finding.code.is_about_memory());
        let printed = failed_output(self.outcome).filter(|_| !about_memory)?;
        let shown = panics::without_repeats(&printed, findings);
        let left_out = shown.len().saturating_sub(MOST_OUTPUT);
        let title = if left_out == 0 { "Output:" } else { "The last lines of the output:" };
        let last: Vec<String> = shown[left_out..].iter().map(|line| escape::line(line)).collect();
        (!last.is_empty()).then(|| format!("{title}\n\n{}", fenced(&last.join("\n"))))
    }

    fn next(&self) -> String {
        let Self { task, outcome, baselines, .. } = self;
        let steps = next_step::advised(task, outcome).into_iter();
        let steps = steps.map(|(when, step)| {
            let mut when = when.to_owned();
            when[..1].make_ascii_uppercase();
            format!("{when} {}", code(&step.command(task, baselines)))
        });
        steps.collect::<Vec<_>>().join("\\\n")
    }
}

fn panicked(outcome: &TestOutcome) -> Option<PanicPlace> {
    panics::place(&failed_output(outcome)?)
}

/// A list below a paragraph; empty without items.
fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
    if items.is_empty() { items } else { format!("\n{items}") }
}

/// `matmul [8,128] f32` in `layer.3` of `mem::step`.
fn allocation(site: &Site) -> String {
    let what: Vec<&str> =
        [&site.operation, &site.tensor].into_iter().flatten().map(String::as_str).collect();
    let what = (!what.is_empty()).then(|| code(&what.join(" ")));
    let scope = site.scope.as_ref().map(|scope| format!("in {}", code(scope)));
    let function = site.function.as_ref().map(|function| format!("of {}", code(function)));
    what.into_iter().chain(scope).chain(function).collect::<Vec<_>>().join(" ")
}

/// The call sites of a finding, folded. A single one is the line of the finding already, and the
/// holders that changed explain a peak better than all of them.
fn call_sites(finding: &Finding) -> String {
    let is_single = finding.sites.len() == 1 && finding.sites[0].line.is_some();
    if is_single || !finding.grown.is_empty() || !finding.shrunk.is_empty() {
        return String::new();
    }
    let is_of_site = |part| {
        let parts = [LinePart::Place, LinePart::Operation, LinePart::Amount, LinePart::More];
        parts.contains(&part)
    };
    let message = finding.message.lines().next().unwrap_or_default().to_owned();
    let brief = Finding { message, keeps_at: None, kept_through: None, ..finding.clone() };
    let lines = findings::parts(&brief, Verbosity::Normal).into_iter();
    let is_placed = finding.sites.iter().any(|site| site.place().is_some());
    let title = if is_placed { "Call sites" } else { "Blocks" };
    let lines: Vec<String> = lines
        .filter(|line| is_of_site(line.part))
        .map(|line| escape::line(line.text.strip_prefix("  ").unwrap_or(&line.text)))
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!(
            "\n<details><summary>{title}</summary>\n\n{}\n\n</details>\n",
            fenced(&lines.join("\n"))
        ),
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{HeadLine, Level};
    use memcheck_core::judgement::verdict::{Status, Verdict, conclude};

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn text(outcome: &TestOutcome) -> String {
        let links = SourceLinks::on_the_web(Some("https://host/{file}#L{line}"));
        let (places, sources) = (FindingPlaces::new("/w".into()), SourceLines::default());
        let (places, sources) = (&places, &sources);
        let task = &task();
        Section { task, outcome, links: &links, places, sources, baselines: &[] }.text()
    }

    fn failed(findings: Vec<Finding>) -> TestOutcome {
        let verdict = conclude(findings, |_| Level::Deny);
        TestOutcome { verdict, ..leaky() }
    }

    #[test]
    fn a_leak_has_its_line_its_cause_its_remedy_and_the_next_command_once_each() {
        let text = text(&leaky());
        let parts = [
            "**leak:** host grows by 2,097,152 B (2.00 MiB) per iteration",
            "\n- allocated at [`src/model.rs:20`](https://host/src/model.rs#L20): `matmul [512,1024] \
             f32` in `model.head` of `app::Model::forward`\n",
            "\n- cause: ",
            " (`graph-kept`)\n- evidence: ",
            "\n- remedy: ",
            "\n\nAfter the fix: `cargo memcheck run -p app --test mem a::b --exact --device cpu`\\\n\
             For all call sites: `cargo memcheck profile -p app --test mem a::b --exact --device cpu`\n\n",
        ];
        let at: Vec<_> = parts.iter().map(|part| text.find(part)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?}:\n{text}");
        for part in ["src/model.rs:20`", "cause: ", "remedy: ", "cargo memcheck profile"] {
            assert_eq!(text.matches(part).count(), 1, "{part}:\n{text}");
        }
        assert!(!text.contains("<details>"), "the only call site is the line:\n{text}");
        let mut two = leaky();
        let sites = &mut two.verdict.findings[0].sites;
        sites.push(Site { line: Some(30), ..sites[0].clone() });
        let text = self::text(&two);
        let folded = "<details><summary>Call sites</summary>\n\n```text\nallocated at src/model.rs:20 (app::";
        assert!(text.contains(folded), "{text}");
    }

    #[test]
    fn a_panic_has_its_line_its_message_and_its_output_without_the_panic() {
        let message = "the body panicked: assertion `left == right` failed\n  left: 1\n right: 2";
        let mut outcome = failed(vec![Finding::new(Code::TestFailed, message)]);
        outcome.output.stderr = "before\nthread 'a' (7) panicked at tests/mem.rs:20:5:\n\
                                 assertion `left == right` failed\n  left: 1\n right: 2\n\
                                 note: run with `RUST_BACKTRACE=1` environment variable"
            .to_owned();
        let expected = "**test-failed:** the body panicked: assertion `left == right` failed\n\n\
                        ```text\n  left: 1\n right: 2\n```\n\n\
                        - line: [`tests/mem.rs:20`](https://host/tests/mem.rs#L20)\n\n\
                        Output:\n\n```text\nbefore\n```\n\n\
                        Next: `RUST_BACKTRACE=1 cargo memcheck run -p app --test mem a::b --exact \
                        --no-capture --device cpu`\n\n";
        assert_eq!(text(&outcome), expected);
    }

    #[test]
    fn a_crash_has_its_line_then_its_last_output_then_the_hint_and_the_next_command() {
        let crash = Finding {
            keeps_at: Some(HeadLine { file: "a.rs".to_owned(), line: 7, function: None }),
            ..Finding::new(Code::Crashed, "SIGABRT (signal 6) ended the process")
        };
        let mut outcome = failed(vec![crash.hint("read the end")]);
        outcome.output.stderr = "first\nfatal: bad state".to_owned();
        let text = text(&outcome);
        let parts = [
            "**crashed:** SIGABRT",
            "\n- test: [`a.rs:7`]",
            "\n\nOutput:\n\n```text\nfirst\nfatal: bad state\n```\n",
            "\n- hint: read the end\n",
            "Next: `RUST_BACKTRACE=1 cargo memcheck run ",
        ];
        let at: Vec<_> = parts.iter().map(|part| text.find(part)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?}:\n{text}");
        assert_eq!(text.matches("Output:").count(), 1, "{text}");
    }

    #[test]
    fn a_panic_has_its_callers_below_its_line() {
        let mut outcome = failed(vec![Finding::new(Code::TestFailed, "the body panicked: why")]);
        outcome.output.stderr = "thread 'a' (7) panicked at src/lib.rs:3:5:\nwhy\n\
             stack backtrace:\n   0: app::fail\n             at ./src/lib.rs:3:5\n   \
             1: mem::a::body\n             at ./tests/mem.rs:20:5\n"
            .to_owned();
        let text = text(&outcome);
        let lines = "\n- line: [`src/lib.rs:3`](https://host/src/lib.rs#L3) of `app::fail`\n\
                     - called from [`tests/mem.rs:20`](https://host/tests/mem.rs#L20) of \
                     `mem::a::body`\n";
        assert!(text.contains(lines), "{text}");
        assert!(!text.contains("Output:"), "{text}");
    }

    #[test]
    fn the_line_of_a_crash_and_of_an_error_comes_before_those_that_called_it() {
        let link = |place: &str| {
            let (file, line) = place.split_once(':').unwrap();
            format!("[`{place}`](https://host/{file}#L{line})")
        };
        let function = Some("app::f".to_owned());
        let at = HeadLine { file: "a.rs".to_owned(), line: 7, function };
        let message = "SIGSEGV (signal 11) ended the process\ncalled from b.rs:9 (app::g)";
        let crash = Finding { keeps_at: Some(at), ..Finding::new(Code::Crashed, message) };
        let crashed = text(&failed(vec![crash]));
        let lines = [
            format!("- line: {} of `app::f`\n", link("a.rs:7")),
            format!("- called from {} of `app::g`\n", link("b.rs:9")),
        ];
        let expected = format!("process\n\n{}", lines.concat());
        assert!(crashed.contains(&expected), "{crashed}");
        let message =
            "the body failed: why\n  left: 1\n   at a.rs:7 (app::f)\n   at b.rs:9 (app::g)";
        let error = text(&failed(vec![Finding::new(Code::TestFailed, message)]));
        let expected = format!(
            "why\n\n```text\n  left: 1\n```\n\n- line: {} of `app::f`\n{}",
            link("a.rs:7"),
            lines[1]
        );
        assert!(error.contains(&expected), "{error}");
    }

    #[test]
    fn a_rise_of_the_allocations_has_the_line_of_its_first_site() {
        let site = |line| Site { file: Some("a.rs".into()), line: Some(line), ..Site::default() };
        let sites = [3, 4].map(site).into();
        let more = Finding { sites, ..Finding::new(Code::AllocationsRegression, "more") };
        let text = text(&failed(vec![more]));
        assert!(text.contains("\n- allocated at [`a.rs:3`]"), "{text}");
    }

    #[test]
    fn a_regression_has_the_holders_that_grew_and_one_command_that_accepts() {
        let holder = |name: &str, place: Option<&str>| GrownHolder {
            holder: name.to_owned(),
            place: place.map(str::to_owned),
            now: 4_096,
            ..GrownHolder::default()
        };
        let grown = vec![holder("softmax", Some("src/model.rs:42")), holder("matmul", None)];
        let (baseline, figure) = (Some(1_024), Some(10_240));
        let peak =
            Finding { grown, baseline, figure, ..Finding::new(Code::PeakRegression, "higher") };
        let mut outcome = failed(vec![peak, Finding::new(Code::AllocationsRegression, "more")]);
        let report = outcome.report.as_mut().unwrap();
        report.pending = Some("/w/snapshots/a@cpu.snap.new".into());
        report.snapshot = Some("/w/snapshots/a@cpu.snap".into());
        let text = text(&outcome);
        let expected = "**peak-regression:** higher\n\n\
                        - line: [`src/model.rs:42`](https://host/src/model.rs#L42): +4.00 KiB softmax \
                        (new at the peak)\n- +4.00 KiB matmul (new at the peak)\n\
                        - +1.00 KiB other call sites (1.00 KiB → 2.00 KiB, +100.0%)\n\
                        - cause: 2 allocations at src&#47;model.rs:42 and 1 more call site are new \
                        at the peak (+8.00 KiB)\n\
                        - remedy: remove the allocations of src&#47;model.rs:42 and 1 more call site, \
                        or drop their tensors before the peak\n\n\
                        **allocations-regression:** more\n\n- test: ";
        assert!(text.starts_with(expected), "{text}");
        let last = "\n\nIf the new figures are intended: `cargo memcheck accept a@cpu.snap`\\\n\
                    If not: `cargo memcheck profile -p app --test mem a::b --exact --device cpu`\n\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn a_killed_test_has_its_progress_and_the_command_that_runs_it() {
        let text = text(&TestOutcome::killed(None));
        let expected = "**not-measured:** killed while running\n\n- test: ";
        assert!(
            text.starts_with(expected) && text.contains("\n\nNext: `cargo memcheck run "),
            "{text}"
        );
        let none = Verdict { status: Status::Failed, findings: Vec::new(), denied: Vec::new() };
        let empty = self::text(&TestOutcome { verdict: none, ..leaky() });
        assert!(empty.starts_with("Next: "), "{empty}");
    }
}
