//! The JSON stream: one object on each line, with `summary` as the last. The format is part of the
//! public interface: fields can be added, but must not be changed.

mod line;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use memcheck_core::device::Family;
use memcheck_core::presentation::digest::Digest;
use serde::Serialize;

use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;
use crate::invocation::values::Format;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::origin::RunOrigin;
use crate::presentation::tally::Tally;
use crate::system::error::{Failure, Reported};
use crate::system::escape::{Form, escape};
use crate::system::printing::Stdout;
use crate::system::process::INTERRUPTED;

use line::{
    Bookkeeping, ErrorLine, FollowedIterations, ProofLine, Refusals, Repeat, SoakedIterations,
    StreamLine, SummaryLine, TestFinished, UnknownValues, iterations, metrics, phases,
};

pub(crate) const VERSION: u32 = 1;

pub(crate) struct JsonLines<W> {
    to: W,
    run: Option<RunOrigin>,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, run: None }
    }

    fn line(&mut self, line: &StreamLine<'_>) {
        write_line(&mut self.to, self::text(line));
    }
}

/// In one piece, so that a process that is killed leaves whole lines. `Stdout` keeps its errors,
/// and a `Vec` has none.
fn write_line(to: &mut impl Write, mut line: String) {
    line.push('\n');
    let _ = to.write_all(line.as_bytes()).and_then(|()| to.flush());
}

impl<W: Write> Presenter for JsonLines<W> {
    fn run_started(&mut self, run: &RunOrigin) {
        self.run = Some(run.clone());
    }

    fn leg_started(&mut self, leg: &Leg, tests: usize) {
        let run = self.run.as_ref();
        let line = StreamLine::RunStarted { version: VERSION, device: leg.name(), tests, run };
        write_line(&mut self.to, text(&line));
    }

    fn proof(&mut self, leg: &Leg, proof: &CheckedProof) {
        let line = ProofLine { leg: leg.name(), state: proof.state(), proof };
        self.line(&StreamLine::Proof(line));
    }

    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let report = outcome.report.as_ref();
        let record = report.map(|report| &report.record);
        let spaces = || record.into_iter().flat_map(|record| &record.spaces);
        let line = TestFinished {
            package: &task.package,
            binary: &task.binary.id,
            test: task.name(),
            case: task.subject.case(),
            device: match record.and_then(|record| record.judged.first()) {
                Some(space) if space.is_device() => space.to_string(),
                _ if task.family() == Family::Cuda => "cuda:0".to_owned(),
                _ => Family::Cpu.name().to_owned(),
            },
            leg: task.leg.name(),
            gpu: outcome.gpu.as_ref(),
            status: outcome.verdict.status,
            seconds: outcome.duration.as_secs_f64(),
            findings: &outcome.verdict.findings,
            denied: &outcome.verdict.denied,
            metrics: record.map(metrics).unwrap_or_default(),
            estimates: record.map_or_else(Vec::new, |record| record.driver.estimates()),
            iterations: record.map(iterations).unwrap_or_default(),
            mapped_files: record
                .and_then(|record| record.process.as_ref())
                .map_or(&[], |memory| &memory.files),
            unified: record.and_then(|record| record.unified.as_ref()),
            followed: record
                .and_then(|record| record.followed.as_ref())
                .map(FollowedIterations::of),
            soaked: record.and_then(|record| record.soaked.as_ref()).map(SoakedIterations::of),
            values: record.and_then(|record| record.values.as_ref()).map(UnknownValues::of),
            fault_sweep: record.and_then(|record| record.fault_sweep.as_ref()).map(Refusals::of),
            repeat: record.and_then(|record| record.repeats.as_ref()).map(Repeat::of),
            growth: spaces()
                .filter(|(space, _)| record.is_some_and(|record| record.judged.contains(space)))
                .map(|(space, measured)| (*space, measured.growth))
                .collect(),
            limits: &task.limits,
            phases: record.map(phases).unwrap_or_default(),
            marks: record.map_or(&[], |record| &record.marks),
            notes: record
                .iter()
                .flat_map(|record| record.notes.iter().chain(&record.remarks))
                .collect(),
            untracked: record.and_then(|record| record.driver.untracked.as_ref()),
            others: record.map_or(&[], |record| &record.driver.others),
            laws: &outcome.across.laws,
            attribution: record.and_then(|record| {
                Some(Digest::of(record.attribution.as_ref()?, record.longer.as_ref()))
            }),
            snapshot: report.and_then(|report| report.snapshot.as_deref()),
            pending: outcome.pending(),
        };
        self.line(&StreamLine::TestFinished(Box::new(line)));
    }

    fn note(&mut self, note: &Note) {
        let Note { package, path, finding, level } = note;
        self.line(&StreamLine::Bookkeeping(Bookkeeping {
            package,
            path: path.as_deref(),
            level: *level,
            finding,
        }));
    }

    fn finished(&mut self, tally: &Tally, exit_code: u8) {
        self.line(&StreamLine::Summary(summary(tally, exit_code)));
    }
}

impl ReportWriter for JsonLines<Vec<u8>> {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        Ok(self.to.clone())
    }

    fn write_to(&self, to: &mut dyn Write) -> anyhow::Result<()> {
        Ok(to.write_all(&self.to)?)
    }
}

fn summary(tally: &Tally, exit_code: u8) -> SummaryLine<'_> {
    let Tally {
        passed,
        failed,
        new,
        new_tests: _,
        new_pending: _,
        not_measured,
        no_device: _,
        ignored,
        needs_review,
        elsewhere,
        not_run,
        denied,
        pending,
        interrupted,
        failure,
        unstarted: _,
        not_started: _,
        repeated,
        took: _,
    } = tally;
    SummaryLine {
        passed: *passed,
        failed: *failed,
        new: *new,
        not_measured: *not_measured,
        ignored: *ignored,
        needs_review: *needs_review,
        elsewhere: *elsewhere,
        not_run: *not_run,
        interrupted: *interrupted,
        repeat: *repeated,
        denied: denied.iter().copied().collect(),
        pending,
        exit_code,
        error: failure.as_ref().map(ErrorLine::of),
    }
}

/// The last line of the stream on stdout has been printed, or is printed now.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// False if it was closed before.
pub(crate) fn close() -> bool {
    !IS_CLOSED.swap(true, Ordering::SeqCst)
}

/// Closes the stream of a command that does not end in time after a signal.
pub(crate) fn late() {
    if close() {
        failed(Reported { exit_code: INTERRUPTED, message: "interrupted".to_owned(), hint: None });
    }
}

pub(crate) fn failed(failure: Reported) {
    close();
    let exit_code = failure.exit_code;
    let tally = Tally { failure: Some(failure), ..Tally::default() };
    JsonLines::new(Stdout).finished(&tally, exit_code);
}

pub(crate) fn failure(failure: &Failure) {
    failed(failure.into());
}

/// `accepted`, `rejected`, `removed`, `stale` or `pending`. No line in the human format.
pub(crate) fn snapshot(format: Format, action: &str, path: &std::path::Path) {
    if format == Format::Json {
        print(&serde_json::json!({"type": "snapshot", "action": action, "path": path}));
    }
}

/// No line in the human format.
pub(crate) fn file(format: Format, kind: &str, path: &std::path::Path, size: u64) {
    if format == Format::Json {
        print(&serde_json::json!({"type": "file", "kind": kind, "path": path, "bytes": size}));
    }
}

pub(crate) fn done(exit_code: u8) {
    close();
    print(&serde_json::json!({"type": "summary", "exit_code": exit_code}));
}

#[derive(Debug, Serialize)]
pub(in crate::presentation::presenters) struct ObjectHead<'a> {
    r#type: &'static str,
    version: u32,
    package: &'a str,
    binary: &'a str,
}

impl<'a> ObjectHead<'a> {
    pub(in crate::presentation::presenters) fn of(
        r#type: &'static str,
        version: u32,
        task: &'a Task,
    ) -> Self {
        Self { r#type, version, package: &task.package, binary: &task.binary.id }
    }
}

/// One line, in which a terminal and a CI runner find nothing to act on.
pub(crate) fn text(line: &impl Serialize) -> String {
    let text = serde_json::to_string(line).expect("lines have only text and numbers");
    escape(text, Form::Json).into_owned()
}

pub(in crate::presentation::presenters) fn print(line: &impl Serialize) {
    write_line(&mut Stdout, text(line));
}

#[cfg(test)]
mod tests {
    use super::super::example::leaky;
    use super::*;
    use crate::discovery::task::example;

    #[test]
    fn the_stream_has_the_documented_fields() {
        let mut lines = JsonLines::new(Vec::new());
        let device = memcheck_core::device::Request::Sim(Some("h200".to_owned()));
        let leg = Leg::new(device, crate::build::leg::DeviceKind::Sim, "");
        lines.leg_started(&leg, 12);
        lines.finished(&Tally { passed: 11, failed: 1, ..Tally::default() }, 100);
        let text = String::from_utf8(lines.text().unwrap()).unwrap();
        let (first, last) = text.trim_end().split_once('\n').unwrap();
        assert_eq!(first, r#"{"type":"run-started","version":1,"device":"sim:h200","tests":12}"#);
        assert!(last.starts_with(r#"{"type":"summary","passed":11,"failed":1,"new":0,"#), "{last}");
        assert!(last.ends_with(r#""exit_code":100}"#), "{last}");
    }

    #[test]
    fn an_attributed_test_lists_its_holders() {
        let mut lines = JsonLines::new(Vec::new());
        lines.test_finished(&example::task(), &leaky());
        let line: serde_json::Value = serde_json::from_slice(&lines.text().unwrap()).unwrap();
        let attribution = &line["attribution"];
        assert_eq!(
            (&attribution["events"], &attribution["hint"]),
            (&26.into(), &"no line tables".into())
        );
        let host = &attribution["spaces"][0];
        assert_eq!((&host["space"], &host["peak"]), (&"host".into(), &(26 << 20).into()));
        let kept = &host["holders"][0];
        assert_eq!((&kept["kind"], &kept["operation"]), (&"kept".into(), &"matmul".into()));
        assert_eq!((&kept["scope"], &kept["line"]), (&"model.head".into(), &20.into()));
        assert_eq!((&kept["bytes"], &kept["count"]), (&(22 << 20).into(), &11.into()));
        assert_eq!(host["survivors"][0]["pattern"], "steady");
        assert_eq!(host["retained"][0]["kind"], "setup");

        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let mut lines = JsonLines::new(Vec::new());
        lines.test_finished(&example::task(), &counted);
        let text = String::from_utf8(lines.text().unwrap()).unwrap();
        assert!(!text.contains("\"attribution\""), "{text}");
    }
}
