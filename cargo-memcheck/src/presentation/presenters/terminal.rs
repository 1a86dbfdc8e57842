//! The output for people: one line for each test, its findings, a progress bar and a summary. All
//! of it goes to stderr.

mod failed;
mod hyperlinks;
mod ignored;
mod layout;
mod output;
mod progress;
mod slowest;
mod source_line;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memcheck_core::judgement::finding::{Class, Code, Finding, Level};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::presentation::text::{Line, LinePart};
use memcheck_core::runs::plan::Stage;
use memcheck_core::size::Size;
use memcheck_core::space::Space;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Progress;

use failed::{FailedTests, NextCommand};
use findings::Folded;
use hyperlinks::Hyperlinks;
use layout::INDENT;
use progress::RunningTest;

use super::live::{Live, Moment};

use super::brief;
use super::notes::TestNotes;
use super::places::FindingPlaces;
use super::source_lines::SourceLines;
use super::{driver_lines, findings, next_step, style, summary};
use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::options::{Pending, ReportContext, baselines_flag};
use crate::invocation::values::{NoTests, Verbosity};
use crate::presentation::events::Presenter;
use crate::presentation::origin::RunOrigin;
use crate::presentation::tally::Tally;
use crate::system::escape;
use crate::system::printing::{eprint_lines, print_above};
use crate::system::process::Capture;

pub(crate) struct Terminal {
    bar: ProgressBar,
    verbosity: Verbosity,
    capture: Capture,
    pending: Pending,
    baselines_flag: Vec<String>,
    no_tests: NoTests,
    filters: Vec<String>,
    several_legs: bool,
    /// The results are those of an earlier run.
    is_replay: bool,
    running: BTreeMap<(String, String), RunningTest>,
    /// The bar shows no guess of the time that is left.
    is_extended: Arc<AtomicBool>,
    /// Columns of the terminal.
    columns: Option<usize>,
    hyperlinks: Option<Hyperlinks>,
    sources: SourceLines,
    places: FindingPlaces,
    /// Failures of the leg.
    failed: usize,
    /// The tests that ran, with their wall time.
    times: Vec<(Duration, String)>,
    /// Ignored tests that are not printed yet.
    ignored: Vec<String>,
    /// The notes about tests that passed which only verbose output has.
    unprinted_notes: usize,
    /// The tests that failed, each with its line, its cause and the next command.
    failures: FailedTests,
    live: Live,
    /// The time of the last line of a live view.
    shown: Option<Instant>,
}

/// Views arrive twice a second. The time between two of them is not exact.
const BETWEEN_LINES: Duration = Duration::from_millis(900);

impl Terminal {
    pub(crate) fn new(report_context: &ReportContext<'_>, legs: usize) -> Self {
        let is_extended = Arc::new(AtomicBool::new(false));
        Self {
            bar: progress::bar(Arc::clone(&is_extended)),
            is_extended,
            verbosity: report_context.reporting.verbosity,
            capture: report_context.capture,
            pending: report_context.pending.clone(),
            baselines_flag: baselines_flag(report_context.roots),
            no_tests: report_context.no_tests,
            filters: report_context.filters.to_vec(),
            several_legs: legs > 1,
            is_replay: report_context.is_replay,
            running: BTreeMap::new(),
            columns: layout::columns(),
            hyperlinks: Hyperlinks::new(
                report_context.roots.workspace,
                report_context.reporting.editor.as_deref(),
            ),
            sources: SourceLines::new(report_context.roots.workspace),
            places: FindingPlaces::new(report_context.roots.workspace.to_owned()),
            failed: 0,
            times: Vec::new(),
            ignored: Vec::new(),
            unprinted_notes: 0,
            failures: FailedTests::default(),
            live: Live::default(),
            shown: None,
        }
    }

    fn print_ignored(&mut self) {
        if let Some(line) = ignored::line(&std::mem::take(&mut self.ignored)) {
            self.print(&[line]);
        }
    }

    /// `FAIL app::mem llama::kv_cache: leak  src/model.rs:34`, and below it the cause and the command.
    pub(super) fn keep_failure(&mut self, task: &Task, outcome: &TestOutcome) {
        let verdict = &outcome.verdict;
        if matches!(verdict.status, Status::Passed | Status::Ignored) {
            return;
        }
        self.failed += 1;
        let leg = if self.several_legs { format!(" ({})", task.leg.name()) } else { String::new() };
        let commands = self.commands(task, outcome);
        let (places, screen) = (&self.places, (leg.as_str(), self.columns));
        self.failures.add(failed::lines(task, outcome, places, commands, screen));
    }

    fn commands(&self, task: &Task, outcome: &TestOutcome) -> Vec<NextCommand> {
        let steps = next_step::advised(task, outcome).into_iter();
        steps.map(|(when, step)| (when, step.command(task, &self.baselines_flag))).collect()
    }

    #[cfg(test)]
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.lines()
    }

    fn refresh(&self) {
        let mut running = self.running.iter();
        let first = running.next().map(|((_, test), at)| (test.as_str(), at));
        let message =
            progress::RunningMessage { failed: self.failed, first, others: running.count() };
        let room = self.columns.map(|columns| progress::room(&self.bar, columns));
        let is_extended = self.running.values().any(|test| test.is_extended);
        self.is_extended.store(is_extended, Ordering::Relaxed);
        self.bar.set_message(escape::line(&message.fitted(room)));
    }

    /// In place or, if the bar is hidden, as a line each second.
    fn show(&mut self, moment: &Moment) {
        if self.capture == Capture::Kept && Term::stderr().is_term() {
            let several = ProgressStyle::with_template("{msg}").expect("the template is valid");
            self.bar.set_style(several);
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.set_message(moment.area(self.columns.unwrap_or(usize::MAX)));
        } else if self.shown.is_none_or(|last| last.elapsed() >= BETWEEN_LINES) {
            self.shown = Some(Instant::now());
            self.print(&[moment.line()]);
        }
    }

    fn print(&self, lines: &[String]) {
        eprint_lines(lines);
    }

    /// `PASS [   0.012s] app::mem llama::kv_cache  peak 502.5 MiB  growth 0 B`, with its figures on a
    /// line of their own if the terminal is too narrow.
    fn line(&self, task: &Task, outcome: &TestOutcome) -> Vec<String> {
        let time = format!("[{:>8.3}s]", outcome.duration.as_secs_f64());
        let start = format!("{} {}", style::status(outcome.verdict.status), style::dim(&time));
        let mut place = String::new();
        if self.several_legs {
            place.push_str(&style::dim(&format!(" ({})", task.leg.name())));
        }
        let index = outcome.gpu.as_ref().and_then(|gpu| gpu.index);
        if let Some(index) = index.filter(|_| task.leg.gpus.len() > 1) {
            place.push_str(&style::dim(&format!(" on GPU {index}")));
        }
        let figures = self.figures(outcome);
        // The marks of colors have no width.
        let width = console::measure_text_width;
        let (binary, name) = (task.binary.id.as_str(), task.name());
        let room = |taken: &str| {
            self.columns.map(|columns| columns.saturating_sub(width(&start) + 2 + width(taken)))
        };
        let with = |(binary, name): (String, String)| {
            format!("{start} {} {}{place}", style::dim(&binary), style::strong(&name))
        };
        match layout::fitted(binary, name, room(&format!("{place}{figures}"))) {
            Some(fitted) => vec![with(fitted) + &figures],
            None => {
                let line = with(layout::shortened(binary, name, room(&place)));
                vec![line, format!("{:INDENT$}{}", "", figures.trim_start())]
            }
        }
    }

    /// `  peak 502.5 MiB  growth 0 B` of each judged space.
    fn figures(&self, outcome: &TestOutcome) -> String {
        let mut figures = String::new();
        if let Some(report) = &outcome.report {
            let record = &report.record;
            let found = |space| {
                let mut findings = outcome.verdict.findings.iter();
                findings.any(|finding| finding.space == Some(space))
            };
            // Every tensor comes with some small blocks, so that their figures matter only if a
            // finding concerns them.
            let shown = |space: &&Space| **space != Space::HostSmall || found(**space);
            let judged: Vec<Space> = record.judged.iter().filter(shown).copied().collect();
            for (space, measured) in
                judged.iter().filter_map(|space| record.spaces.get_key_value(space))
            {
                let peak = measured.metrics.peak_allocated;
                // Nothing was measured before the body failed.
                if peak == 0 && findings::is_cut_short(record) {
                    continue;
                }
                let name = if judged.len() > 1 { format!("{space} ") } else { String::new() };
                let growth = match record.measures_growth() {
                    true => format!("growth {}", Size(measured.metrics.growth)),
                    false if findings::is_cut_short(record) => style::dim("until the body failed"),
                    false => style::dim("peak only"),
                };
                let peak = Size(peak);
                figures.push_str(&format!("  {name}peak {peak}  {growth}"));
            }
            if let Some(unified) = &record.unified {
                figures.push_str(&format!("  {}", unified.shown()));
            }
            if let Some(values) = &record.values {
                figures.push_str(&format!("  {}", style::warning(&values.mark())));
            }
        }
        figures
    }

    fn findings(&self, outcome: &TestOutcome) -> Vec<String> {
        let verbose = self.verbosity == Verbosity::Verbose;
        let screen = (self.columns, self.hyperlinks.as_ref());
        let mut lines = Vec::new();
        for Folded { finding, consequences } in findings::folded(&outcome.verdict.findings) {
            let counts = match finding.code.row().class {
                Class::Measured | Class::Instrument => true,
                Class::Bookkeeping => outcome.verdict.denied.contains(&finding.code),
            };
            // All tests of a first run lack a baseline. The summary states the next step, so that
            // it need not be repeated here.
            if !verbose && finding.code == Code::MissingBaseline {
                if !counts {
                    continue;
                }
                let brief = Finding { hint: None, ..finding.clone() };
                lines.extend(layout::finding(&brief, self.verbosity, counts, screen));
                continue;
            }
            let mut parts = findings::parts(finding, self.verbosity);
            if finding.code == Code::TestFailed {
                output::add_place(&mut parts, outcome);
            }
            for (file, line) in brief::lines_with_source(finding, outcome) {
                if let Some(text) = self.sources.line(&file, line) {
                    source_line::add(&mut parts, (&file, line), &text, self.columns);
                }
            }
            let remedy = parts.iter().position(|line| line.part == LinePart::Remedy);
            let is_end = findings::is_end(finding);
            let remedy = parts.split_off(remedy.filter(|_| is_end).unwrap_or(parts.len()));
            lines.extend(layout::lines(parts, counts, screen));
            // The last lines of the output mostly have the cause.
            lines.extend(is_end.then(|| self.output(outcome)).into_iter().flatten());
            let below = |line: Line| Line { text: line.text.trim_start().to_owned(), ..line };
            lines.extend(layout::lines(remedy.into_iter().map(below).collect(), counts, screen));
            for finding in consequences {
                lines.extend(layout::consequence(finding, self.verbosity, screen));
            }
        }
        lines
    }

    /// Figures that do not come from the program's own calls: if the output is verbose, or if a
    /// limit judges them.
    fn driver(&self, outcome: &TestOutcome) -> Vec<String> {
        let all = self.verbosity == Verbosity::Verbose;
        let mut figures = if all { driver_lines::lines(outcome) } else { Vec::new() };
        if all || judges_process(outcome) {
            figures.extend(driver_lines::process(outcome));
        }
        figures.into_iter().map(|line| style::dim(&format!("{:13}{line}", ""))).collect()
    }

    fn output(&self, outcome: &TestOutcome) -> Vec<String> {
        let failing = matches!(outcome.verdict.status, Status::Failed | Status::NotMeasured);
        let shows = failing || self.live.is_used();
        if !shows || self.capture == Capture::Shown {
            return Vec::new();
        }
        output::lines(outcome, output::OutputExtent::new(self.verbosity, self.live.is_used()))
    }

    /// The lines of a test that has ended.
    pub(super) fn result(&self, task: &Task, outcome: &TestOutcome) -> Vec<String> {
        let mut lines = Vec::new();
        let uneventful = matches!(outcome.verdict.status, Status::Passed | Status::Ignored);
        if self.verbosity > Verbosity::Quiet || !uneventful {
            lines.extend(self.line(task, outcome));
            let record = outcome.report.as_ref().map(|report| &report.record);
            let phases = record.map(findings::phases).unwrap_or_default();
            lines.extend(phases.iter().flat_map(|line| layout::below(line, self.columns)));
            lines.extend(self.laws(outcome));
            lines.extend(self.findings(outcome));
            lines.extend(self.acceptance(task, outcome));
            let notes = self.notes(outcome).into_iter();
            lines.extend(
                notes.flat_map(|note| layout::below(&format!("note: {note}"), self.columns)),
            );
            lines.extend(self.driver(outcome));
            if !outcome.verdict.findings.iter().any(findings::is_end) {
                lines.extend(self.output(outcome));
            }
        }
        lines
    }

    /// All notes. Of a test that passed, only those that question it, unless the output is verbose.
    fn notes(&self, outcome: &TestOutcome) -> Vec<String> {
        let notes = TestNotes::of(outcome);
        if self.hides_remarks(outcome) { notes.shown } else { notes.all() }
    }

    fn hides_remarks(&self, outcome: &TestOutcome) -> bool {
        outcome.verdict.status == Status::Passed && self.verbosity < Verbosity::Verbose
    }

    /// The advice to accept the new figures, once for all findings of a test.
    fn acceptance(&self, task: &Task, outcome: &TestOutcome) -> Vec<String> {
        let advice = next_step::acceptance(task, outcome, &self.baselines_flag);
        let Some((when, command)) = advice else { return Vec::new() };
        let (when, command) = (style::hint(when), style::hint(&command));
        layout::with_command(&format!("{:INDENT$}{when}", ""), &command, INDENT + 2, self.columns)
    }

    fn laws(&self, outcome: &TestOutcome) -> Vec<String> {
        let lines = findings::laws(&outcome.across.laws, self.verbosity);
        lines.iter().flat_map(|line| layout::below(line, self.columns)).collect()
    }

    pub(super) fn note_lines(&self, note: &Note) -> Vec<String> {
        let denied = note.level == Level::Deny;
        if self.verbosity == Verbosity::Quiet && !denied {
            return Vec::new();
        }
        let mut lines = findings::lines(&note.finding, Verbosity::Verbose);
        let word = if denied { style::error("error:") } else { style::warning("warning:") };
        lines[0] = format!("{word} {}", lines[0]);
        lines
    }
}

fn judges_process(outcome: &TestOutcome) -> bool {
    let record = outcome.report.as_ref().map(|report| &report.record);
    record.is_some_and(|record| record.limits.max_rss_growth.value.is_some())
}

/// `ok on cpu: 3 passed, 0 failed in 0.83s of test time`.
fn verdict(place: &str, (tally, counts): (&Tally, &str), ok: bool) -> String {
    let result = if ok { style::strong("ok") } else { style::error("not ok") };
    let seconds = tally.took.as_secs_f64();
    format!("{result}{place}: {counts} in {seconds:.2}s of test time")
}

/// Tests of two binaries can have the same name and run at the same time.
fn key(task: &Task) -> (String, String) {
    (task.binary.id.clone(), task.name().to_owned())
}

impl Presenter for Terminal {
    fn run_started(&mut self, run: &RunOrigin) {
        self.sources.begin(run);
    }

    fn leg_started(&mut self, leg: &Leg, tests: usize) {
        self.print_ignored();
        self.failed = 0;
        self.bar.set_prefix(match self.several_legs {
            true => format!("running on {}", leg.name()),
            false => "running".to_owned(),
        });
        if self.verbosity > Verbosity::Quiet {
            let plural = if tests == 1 { "" } else { "s" };
            let running = if self.is_replay { "" } else { "running " };
            self.print(&[format!("{running}{tests} memory test{plural} on {}", leg.name())]);
        }
        self.bar.reset();
        self.bar.set_length(tests as u64);
        if self.capture == Capture::Kept {
            // `indicatif` hides the bar if stderr is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(120));
            print_above(&self.bar);
        }
    }

    fn test_started(&mut self, task: &Task) {
        self.running.insert(key(task), RunningTest::default());
        self.refresh();
    }

    fn progress(&mut self, task: &Task, stage: Stage, progress: &Progress) {
        if let Some(view) = &progress.view {
            let moment = self.live.moment(task, progress, view);
            return self.show(&moment);
        }
        if let Some(known) = self.running.get_mut(&key(task)) {
            *known = RunningTest::new(stage, progress, &task.limits);
        }
        self.refresh();
    }

    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        self.running.remove(&key(task));
        let is_ignored = outcome.verdict.status == Status::Ignored;
        if self.live.is_used() {
            self.bar.set_message("");
        }
        match self.verbosity {
            Verbosity::Quiet if is_ignored => {}
            Verbosity::Normal if is_ignored => self.ignored.push(task.name().to_owned()),
            _ => self.print(&self.result(task, outcome)),
        }
        self.keep_failure(task, outcome);
        if self.verbosity == Verbosity::Normal && self.hides_remarks(outcome) {
            self.unprinted_notes += TestNotes::of(outcome).remarks.len();
        }
        if !outcome.duration.is_zero() {
            let test = format!("{} {} on {}", task.binary.id, task.name(), task.leg.name());
            self.times.push((outcome.duration, test));
        }
        if !is_ignored {
            self.bar.inc(1);
        }
        self.refresh();
    }

    fn note(&mut self, note: &Note) {
        self.print(&self.note_lines(note));
    }

    fn leg_finished(&mut self, leg: &Leg, tally: &Tally) {
        self.bar.finish_and_clear();
        self.print_ignored();
        if self.several_legs && self.verbosity > Verbosity::Quiet {
            // The summary reports if no test ran at all.
            let ok = tally.exit_code(NoTests::Pass) == exit::OK && tally.not_run == 0;
            let counts = summary::counts(tally);
            self.print(&[verdict(&format!(" on {}", leg.name()), (tally, &counts), ok)]);
        }
    }

    fn finished(&mut self, tally: &Tally, exit_code: u8) {
        self.bar.finish_and_clear();
        self.print_ignored();
        let names_new = summary::names_new_tests(tally, &self.pending);
        let counts = if names_new { summary::results(tally) } else { summary::counts(tally) };
        let mut lines = vec![verdict("", (tally, &counts), exit_code == exit::OK)];
        lines.extend(std::mem::take(&mut self.failures).lines());
        if self.verbosity == Verbosity::Verbose {
            lines.extend(slowest::lines(std::mem::take(&mut self.times)));
        }
        lines.extend(summary::without_baseline(tally).filter(|_| !names_new));
        lines.extend(summary::repeated(tally));
        lines.extend(summary::unprinted(self.unprinted_notes).map(|line| style::dim(&line)));
        let pending = (&self.pending, self.baselines_flag.as_slice());
        lines.extend(summary::next_steps(tally, &self.filters, pending, self.no_tests));
        self.print(&lines);
    }
}
