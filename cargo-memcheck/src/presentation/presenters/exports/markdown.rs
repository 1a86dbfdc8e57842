//! A Markdown report, for example for a pull request: the failures, then the figures that differ from
//! those of the baselines, then a folded table of all tests. It is as long as a comment can be.

mod failure;
pub(in crate::presentation::presenters) mod inline;
mod without_baseline;

use std::fmt::Write;

use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::phase;
use memcheck_core::measurement::record::Record;
use memcheck_core::presentation::sizes;
use memcheck_core::size::{Size, both, exact};
use memcheck_core::space::Space;

use failure::Section;
use inline::{code, fenced, message};
use without_baseline::NewTests;

use super::html::{FigureRow, Sources, Then, figures, text_of_limit};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::options::baselines_flag;
use crate::invocation::values::Verbosity;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::origin::RunOrigin;
use crate::presentation::presenters::brief::Brief;
use crate::presentation::presenters::kinds::FailureKind;
use crate::presentation::presenters::places::FindingPlaces;
use crate::presentation::presenters::source_lines::SourceLines;
use crate::presentation::presenters::{driver_lines, findings, next_step, notes, summary};
use crate::presentation::tally::Tally;
use crate::system::escape::{self, Form, escape};

/// GitHub refuses a comment of more characters
/// (<https://github.com/orgs/community/discussions/41331>).
const MOST: usize = 65_536;
/// The texts after the parts that can be cut, and [`FIRST_LINE`].
const RESERVED: usize = 768;
/// The room for a line above the page, by which a workflow finds its comment again (`action.yml`).
#[cfg(test)]
const FIRST_LINE: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Markdown {
    sources: Sources,
    cut_short: String,
    places: FindingPlaces,
    lines: SourceLines,
    failures: Vec<FailureSection>,
    new: NewTests,
    /// The rows of figures that rose.
    rises: Vec<String>,
    falls: Vec<String>,
    rows: Vec<String>,
    driver: String,
    laws: String,
    notes: String,
    counts: String,
    /// The flag of the folder of the baselines.
    baselines_flag: Vec<String>,
}

/// A row of the table of failures, and the section of the test.
#[derive(Debug)]
struct FailureSection {
    kind: FailureKind,
    row: String,
    section: String,
}

impl Markdown {
    /// The report compares with the baselines of the workspace.
    pub(crate) fn new(roots: Roots<'_>) -> Self {
        Self {
            sources: Sources::new(roots),
            places: FindingPlaces::new(roots.workspace.to_owned()),
            lines: SourceLines::new(roots.workspace),
            baselines_flag: baselines_flag(roots),
            ..Self::default()
        }
    }

    /// Figures that differ from those of the baseline, within its tolerance or beyond.
    fn add_changes(&mut self, test: &str, leg: &str, outcome: &TestOutcome, then: &Then) {
        let record = outcome.report.as_ref().map(|report| &report.record);
        let rows = record.map(|record| figures(record, then)).unwrap_or_default();
        for FigureRow { space, name, now, then, .. } in rows {
            let Some(then) = then.filter(|then| *then != now) else { continue };
            let sign = if now > then { '+' } else { '\u{2212}' };
            let is_count = phase::split(&name).map_or(name.as_str(), |(_, it)| it) == "allocations";
            let size = |bytes| if is_count { exact(bytes) } else { Size(bytes).to_string() };
            let apart = || sizes::apart(then, now);
            let [before, after] = if is_count { [then, now].map(exact) } else { apart() };
            let share = sizes::share(then, now).map(|share| format!(" ({share})"));
            let (change, share) = (size(now.abs_diff(then)), share.unwrap_or_default());
            let row = format!(
                "| {test} | {leg} {space} | {name} | {before} | {after} | {sign}{change}{share} |\n"
            );
            let of = if now > then { &mut self.rises } else { &mut self.falls };
            of.push(row);
        }
    }
}

impl Presenter for Markdown {
    fn run_started(&mut self, run: &RunOrigin) {
        self.sources.link_to_web(run);
        self.lines.begin(run);
    }

    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let verdict = &outcome.verdict;
        let lacks = |finding: &Finding| finding.code == Code::MissingBaseline;
        let lacks_baseline = verdict.findings.iter().all(lacks) && !verdict.findings.is_empty();
        let status = match verdict.status {
            Status::Passed => "passed",
            Status::NeedsReview if lacks_baseline => "to review",
            Status::NeedsReview => "**to review**",
            Status::Failed => "**failed**",
            Status::NotMeasured => "**not measured**",
            Status::Ignored => "ignored",
        };
        // A failure has its codes.
        let codes = next_step::codes(verdict);
        let status = match (verdict.status, codes.as_str()) {
            (Status::Passed | Status::Ignored, _) | (_, "") => status.to_owned(),
            (_, codes) => format!("{status}: {codes}"),
        };
        let test = format!("{} {}", code(&task.binary.id), code(task.name()));
        let leg = message(&task.leg.name());
        let record = outcome.report.as_ref().map(|report| &report.record);
        let found = |space| verdict.findings.iter().any(|finding| finding.space == Some(space));
        // Every tensor comes with some small blocks.
        let shown = |space: &&Space| **space != Space::HostSmall || found(**space);
        let judged: Vec<_> = record
            .into_iter()
            .flat_map(|record| {
                let judged = record.judged.iter().filter(shown);
                judged.filter_map(|space| record.spaces.get_key_value(space))
            })
            .collect();
        if judged.is_empty() {
            let none = [NONE; 4].join(" | ");
            self.rows.push(format!("| {test} | {leg} | {status} | {none} |\n"));
        }
        let then = Then::read(outcome, &self.sources);
        let is_measured = record.is_some_and(Record::measures_growth);
        let is_cut = record.is_some_and(findings::is_cut_short);
        let retained = |bytes| if is_cut { NONE.to_owned() } else { both(bytes) };
        let growth = |bytes| if is_measured { both(bytes) } else { NONE.to_owned() };
        for (space, measured) in judged {
            let metrics = &measured.metrics;
            self.rows.push(format!(
                "| {test} | {leg} {space} | {status} | {} | {} | {} | {} |\n",
                both(metrics.peak_allocated),
                growth(metrics.growth),
                retained(metrics.retained),
                limit(outcome, *space, &then),
            ));
        }
        self.add_changes(&test, &leg, outcome, &then);
        let driver_figures: Vec<String> =
            driver_lines::lines(outcome).iter().map(|line| escape::line(line)).collect();
        if !driver_figures.is_empty() {
            let _ = writeln!(
                self.driver,
                "{} {} on {}\n  {}\n",
                escape::line(&task.binary.id),
                escape::line(task.name()),
                task.leg.name(),
                driver_figures.join("\n  ")
            );
        }
        for note in notes::of(outcome) {
            let _ = writeln!(self.notes, "- {test} on {leg}: {}", message(&note));
        }
        let phases = record.map(findings::phases).unwrap_or_default();
        if !phases.is_empty() {
            let _ = writeln!(self.laws, "- {test} on {leg}: {}", phases.join("; "));
        }
        let laws = findings::laws(&outcome.across.laws, Verbosity::Normal);
        if !laws.is_empty() {
            let laws: Vec<String> = laws.iter().map(|law| code(law)).collect();
            let _ = writeln!(self.laws, "- {test} on {leg}: {}", laws.join(", "));
        }
        if !matches!(verdict.status, Status::Passed | Status::Ignored) {
            if lacks_baseline {
                let next = next_step::first(task, outcome);
                let command = next.as_ref().map(|step| step.command(task, &self.baselines_flag));
                return self.new.add(format!("- {test} on {leg}\n"), next, command);
            }
            let section = Section {
                task,
                outcome,
                links: self.sources.links(),
                places: &self.places,
                sources: &self.lines,
                baselines: &self.baselines_flag,
            };
            let Brief { at, mark, cause, kind, fix: _ } = Brief::of(task, outcome, &self.places);
            let mark = mark.map(|mark| format!(" ({mark})")).unwrap_or_default();
            let at = at.map(|(file, line)| section.linked(&file, line) + &mark);
            let at = at.unwrap_or_else(|| NONE.to_owned());
            let cause = cause.map_or(NONE.to_owned(), |cause| message(&cause));
            let row = format!("| {test} | {leg} | {at} | {cause} |\n");
            let section = format!("### {test} on {leg}\n\n{}", section.text());
            self.failures.push(FailureSection { kind, row, section });
        }
    }

    fn note(&mut self, note: &Note) {
        let _ = writeln!(self.notes, "- {}: {}", note.finding.code, message(&note.finding.message));
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.counts = summary::counts(tally);
        let lines = summary::cut_short(tally);
        if !lines.is_empty() {
            self.cut_short = format!("{}\n\n", fenced(&lines.join("\n")));
        }
        for line in summary::without_baseline(tally).into_iter().chain(summary::repeated(tally)) {
            let _ = writeln!(self.notes, "- {}", message(&line));
        }
    }
}

impl ReportWriter for Markdown {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let Self { cut_short, failures, new, rises, falls, .. } = self;
        let Self { rows, driver, laws, notes, counts, .. } = self;
        let mut page = Page(format!("## Memory tests: {counts}\n\n{cut_short}"));
        let mut failures: Vec<&FailureSection> = failures.iter().collect();
        failures.sort_by_key(|test| test.kind);
        let all = |of: fn(&FailureSection) -> &String| -> Vec<String> {
            failures.iter().map(|it| of(it).clone()).collect()
        };
        if failures.len() > 1 {
            let titles = "| failure | device | line | cause |\n|---|---|---|---|\n";
            page.add(titles, &all(|it| &it.row), "\n", "rows");
        }
        page.add("", &all(|it| &it.section), "", "failures");
        let titles = "### Changes from the baselines\n\n\
            | test | device | figure | baseline | now | change |\n|---|---|---|---:|---:|---:|\n";
        let changes = [rises.as_slice(), falls].concat();
        page.add(titles, &changes, "\n", "changed figures");
        let next = new.command(&self.baselines_flag);
        let next = next.map(|command| format!("\nNext: {}\n\n", code(&command)));
        page.add("### Without a baseline\n\n", &new.tests, &next.unwrap_or_default(), "tests");
        page.add("", &lines(notes), "\n", "notes");
        let titles = "<details><summary>All tests</summary>\n\n\
            | test | device | result | peak | growth per iteration | live after the body | limit |\n\
            |---|---|---|---:|---:|---:|---|\n";
        page.add(titles, rows, "\n</details>\n", "rows");
        page.add("\n", &lines(laws), "", "laws");
        if !driver.is_empty() {
            let text = fenced(driver.trim_end_matches('\n'));
            let whole =
                format!("\n<details><summary>Driver and NVML</summary>\n\n{text}\n\n</details>\n");
            page.add("", &[whole], "", "figures of the driver");
        }
        Ok(escape(page.0, Form::Text).into_owned().into_bytes())
    }
}

/// The cell of a figure that was not measured, or that is not known.
const NONE: &str = "\u{2014}";

/// The limit that decides a space: that of its finding, or else that of its peak or growth.
fn limit(outcome: &TestOutcome, space: Space, then: &Then) -> String {
    let Some(report) = &outcome.report else { return NONE.to_owned() };
    let mut rows = figures(&report.record, then);
    rows.retain(|row| row.space == space.to_string());
    let findings = outcome.verdict.findings.iter();
    let finding = findings
        .filter(|finding| finding.space == Some(space) && finding.limit.is_some())
        .min_by_key(|finding| finding.code.is_about_a_number());
    text_of_limit(finding, &rows).map_or(NONE.to_owned(), |limit| message(&limit))
}

fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// A page that never becomes too long.
struct Page(String);

impl Page {
    /// Adds as many parts as fit between `before` and `after`, and states how many are left out.
    fn add(&mut self, before: &str, parts: &[String], after: &str, what: &str) {
        if parts.is_empty() {
            return;
        }
        let room = (MOST - RESERVED).saturating_sub(self.0.len() + before.len() + after.len());
        let ends = parts.iter().scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        });
        let kept = ends.take_while(|end| *end <= room).count();
        if kept > 0 {
            self.0.push_str(before);
            self.0.extend(parts[..kept].iter().map(String::as_str));
            self.0.push_str(after);
        }
        if kept < parts.len() {
            let left_out = exact((parts.len() - kept) as u64);
            let _ = writeln!(self.0, "\n{left_out} {what} are left out: the page is full.\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{Code, Finding, GrownHolder};
    use memcheck_core::judgement::verdict::Verdict;

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn page(report: Markdown) -> String {
        String::from_utf8(report.text().unwrap()).unwrap()
    }

    #[test]
    fn failures_come_first_then_changed_figures_then_the_folded_table() {
        let folder = tempfile::tempdir().unwrap();
        let mut outcome = leaky();
        let report = outcome.report.as_mut().unwrap();
        let header = serde_json::to_string(&report.record.facts).unwrap();
        let body = "host:\n  growth: 7\n  peak_allocated: 12\n  retained: 0\n  setup: 4";
        let text = format!("---\nsource: mem.rs\ninfo: {header}\n---\n{body}\n");
        std::fs::write(folder.path().join("a.snap"), text).unwrap();
        report.snapshot = Some(folder.path().join("a.snap"));
        let mut markdown = Markdown::new(Roots::new(folder.path(), None));
        markdown.test_finished(&task(), &outcome);
        let page = page(markdown);
        let places = [
            "### `app::mem` `a::b` on cpu",
            "### Changes from the baselines",
            "| peak_allocated | 12 B | 26.0 MiB | +26.0 MiB (",
            "<details><summary>All tests</summary>",
        ];
        let places: Vec<usize> = places
            .iter()
            .map(|part| page.find(part).unwrap_or_else(|| panic!("`{part}` is not in\n{page}")))
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn the_table_of_failures_has_the_whole_cause_of_a_regression() {
        let holder = |line: u32, was: Option<&str>| GrownHolder {
            holder: "add [192,1024] f32".to_owned(),
            was_tensor: was.map(str::to_owned),
            place: Some(format!("src/model.rs:{line}")),
            then: if was.is_some() { 524_288 } else { 0 },
            now: 786_432,
            ..GrownHolder::default()
        };
        let larger = [30, 31, 34, 36].map(|line| holder(line, Some("[128,1024] f32")));
        let grown: Vec<GrownHolder> = larger.into_iter().chain([holder(33, None)]).collect();
        let mut outcome = leaky();
        let finding = Finding { grown, ..Finding::new(Code::PeakRegression, "higher") };
        outcome.verdict.findings = vec![finding];
        let mut markdown = Markdown::default();
        // A single failure has no table.
        [leaky(), outcome].iter().for_each(|it| markdown.test_finished(&task(), it));
        let page = page(markdown);
        let (table, _) = page.split_once("### `app::mem`").expect("the section of the test");
        let row = table.lines().rfind(|line| line.starts_with("| `app::mem` `a::b` | "));
        let row = row.unwrap_or_else(|| panic!("no row in\n{table}")).replace("&#47;", "/");
        let cause = "dimension 0 grew from 128 to 192 at src/model.rs:30, :31, :34 and 1 more line \
                     (+1.00 MiB); `add` at src/model.rs:33 is new at the peak \
                     (+768.0 KiB) |";
        assert!(row.ends_with(cause), "{row}");
    }

    #[test]
    fn a_failure_has_links_to_its_lines_if_the_remote_is_known() {
        let mut markdown = Markdown::default();
        markdown.test_finished(&task(), &leaky());
        assert!(!page(markdown).contains("]("), "no address is known");
        let mut markdown = Markdown::default();
        markdown.run_started(&crate::presentation::origin::example());
        markdown.test_finished(&task(), &leaky());
        let page = page(markdown);
        let link = "[`src/model.rs:20`](https://github.com/o/n/blob/0123456/src/model.rs#L20)";
        assert!(page.contains(link), "{page}");
    }

    #[test]
    fn several_failures_have_a_table_first_and_a_cell_without_a_value_has_a_dash() {
        let of = |outcomes: &[TestOutcome]| {
            let mut markdown = Markdown::default();
            for outcome in outcomes {
                markdown.test_finished(&task(), outcome);
            }
            page(markdown)
        };
        let (leak, killed) = (leaky(), TestOutcome::killed(None));
        // Failures of memory come first.
        let page = of(&[killed, leak.clone()]);
        let table = "| failure | device | line | cause |\n|---|---|---|---|\n\
                     | `app::mem` `a::b` | cpu | `src/model.rs:20` | a kept tensor holds the graph \
                     that computed it (graph-kept) |\n\
                     | `app::mem` `a::b` | cpu | `tests/mem.rs:3` (the test) | killed while running |\n\n\
                     ### ";
        assert!(page.contains(table), "{page}");
        assert!(page.contains("| \u{2014} | \u{2014} | \u{2014} | \u{2014} |\n"), "{page}");
        assert!(page.contains(" | growth 1.00 MiB |\n"), "{page}");
        let one = of(&[leak]);
        assert!(!one.contains("| failure |"), "its section is the next line: {one}");
    }

    #[test]
    fn the_text_of_the_line_is_below_it_unless_the_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let file = folder.path().join("src/model.rs");
        let text: String = (1..=30).map(|line| format!("    line {line};\n")).collect();
        std::fs::write(&file, text).unwrap();
        let page = |started: &str| {
            let mut markdown = Markdown::new(Roots::new(folder.path(), None));
            let started = started.to_owned();
            let origin = crate::presentation::origin::example();
            markdown.run_started(&RunOrigin { started, lines: None, ..origin });
            markdown.test_finished(&task(), &leaky());
            page(markdown)
        };
        let later = page("2099-01-01T00:00:00Z");
        assert!(later.contains("of `app::Model::forward`\\\n  `line 20;`\n"), "{later}");
        assert!(!page("2000-01-01T00:00:00Z").contains("line 20;"));
    }

    #[test]
    fn tests_that_lack_nothing_but_a_baseline_are_one_section_with_one_command() {
        let mut markdown = Markdown::default();
        for name in ["a", "b"] {
            let mut outcome = leaky();
            let findings = vec![Finding::new(Code::MissingBaseline, "the test has no baseline")];
            outcome.verdict = Verdict {
                status: Status::NeedsReview,
                findings,
                denied: vec![Code::MissingBaseline],
            };
            let report = outcome.report.as_mut().unwrap();
            report.snapshot = Some(format!("/w/snapshots/{name}@cpu.snap").into());
            report.pending = Some(format!("/w/snapshots/{name}@cpu.snap.new").into());
            markdown.test_finished(&task(), &outcome);
        }
        let page = page(markdown);
        let test = "- `app::mem` `a::b` on cpu\n";
        let next = "Next: `cargo memcheck review a@cpu.snap b@cpu.snap`";
        let section = format!("### Without a baseline\n\n{test}{test}\n{next}\n");
        assert!(page.contains(&section), "{page}");
        assert_eq!(page.matches("Next: ").count(), 1, "{page}");
        assert!(page.contains("| cpu host | to review: missing-baseline |"), "{page}");
    }

    #[test]
    fn a_page_fits_into_a_comment_and_says_what_it_leaves_out() {
        let mut markdown = Markdown::default();
        for _ in 0..20 {
            markdown.test_finished(&task(), &leaky());
        }
        for _ in 0..5_000 {
            markdown.test_finished(&task(), &TestOutcome::ignored());
        }
        let page = page(markdown);
        assert!(page.chars().count() + FIRST_LINE <= MOST, "{}", page.chars().count());
        assert!(page.contains(" rows are left out: the page is full."), "no number of rows");
        assert!(!page.contains(" failures are left out"), "failures come first");
        assert!(page.contains("\n</details>\n"), "the table is closed");
    }
}
