//! The JSON stream: one object on each line, with `summary` as the last. The format is part of the
//! public interface: fields can be added, but must not be changed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use memcheck_core::device::Family;
use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::finding::{Code, Finding, Level};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::driver::{Occupant, Untracked};
use memcheck_core::measurement::fault_sweep::FaultSweep;
use memcheck_core::measurement::process::{MappedFile, Resident};
use memcheck_core::measurement::record::{self, Mark, Metrics, Record};
use memcheck_core::measurement::repeats::{Range, Repeats};
use memcheck_core::measurement::soak::Soaked;
use memcheck_core::measurement::unknown_reads::{ReadSite, UnknownReads};
use memcheck_core::presentation::digest::Digest;
use memcheck_core::shape::ScalingReport;
use memcheck_core::space::Space;
use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::{CheckedProof, ProofState};
use crate::invocation::devices::Leg;
use crate::invocation::values::Format;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::tally::{Repeated, Tally};
use crate::system::error::{Failure, Reported};
use crate::system::escape::{Form, escape};
use crate::system::gpus::RanOn;
use crate::system::printing::Stdout;
use crate::system::process::INTERRUPTED;

pub(crate) const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum StreamLine<'a> {
    RunStarted { version: u32, device: String, tests: usize },
    Proof(ProofLine<'a>),
    TestFinished(Box<TestFinished<'a>>),
    Bookkeeping(Bookkeeping<'a>),
    Summary(SummaryLine<'a>),
}

/// The result of `doctor` on a device like that of the leg.
#[derive(Debug, Serialize)]
struct ProofLine<'a> {
    /// Of the leg. The proof names its own device.
    leg: String,
    state: ProofState,
    #[serde(flatten)]
    proof: &'a CheckedProof,
}

#[derive(Debug, Serialize)]
struct TestFinished<'a> {
    package: &'a str,
    binary: &'a str,
    test: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    case: &'a BTreeMap<String, String>,
    /// The first judged space if it is a GPU; otherwise `cuda:0` or `cpu`, according to the device
    /// family.
    device: String,
    leg: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a RanOn>,
    status: Status,
    /// Wall time of the test process.
    seconds: f64,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "<[Code]>::is_empty")]
    denied: &'a [Code],
    metrics: BTreeMap<Space, SpaceMetrics>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    estimates: Vec<&'static str>,
    iterations: Vec<SpaceIterations<'a>>,
    /// Mapped by the body.
    #[serde(skip_serializing_if = "<[MappedFile]>::is_empty")]
    mapped_files: &'a [MappedFile],
    limits: &'a Limits,
    #[serde(skip_serializing_if = "<[Mark]>::is_empty")]
    marks: &'a [Mark],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    followed: Option<FollowedIterations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soaked: Option<SoakedIterations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<UnknownValues<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault_sweep: Option<Refusals<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Repeat>,
    growth: BTreeMap<Space, Growth>,
    /// Outside the driver's pool. Present only for a test with attribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    untracked: Option<&'a Untracked>,
    #[serde(skip_serializing_if = "<[Occupant]>::is_empty")]
    others: &'a [Occupant],
    /// Present only for the largest case.
    #[serde(skip_serializing_if = "<[ScalingReport]>::is_empty")]
    laws: &'a [ScalingReport],
    /// Present only for a test with attribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    attribution: Option<Digest<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<&'a Path>,
}

#[derive(Debug, Serialize)]
struct Iterations<'a> {
    space: Space,
    allocated: &'a [u64],
    peak: &'a [u64],
    slope: f64,
}

/// The process has no blocks, and so other figures than the other spaces.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SpaceMetrics {
    Blocks(Metrics),
    Process(ProcessMetrics),
}

#[derive(Debug, Serialize)]
struct ProcessMetrics {
    #[serde(flatten)]
    at_end: Resident,
    peak_rss_anon: u64,
    peak_rss_file: u64,
    peak_swap: u64,
    /// Present only if a limit judges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SpaceIterations<'a> {
    Blocks(Iterations<'a>),
    Process { space: Space, rss_anon: Vec<u64>, rss_file: Vec<u64>, swap: Vec<u64> },
}

fn metrics(record: &Record) -> BTreeMap<Space, SpaceMetrics> {
    let with_blocks = record.spaces.iter().filter(|(space, _)| **space != Space::Process);
    let with_blocks =
        with_blocks.map(|(space, measured)| (*space, SpaceMetrics::Blocks(measured.metrics)));
    let growth = record.spaces.get(&Space::Process).map(|measured| measured.metrics.growth);
    let of_process = record.process.iter().map(|memory| {
        let Resident { rss_anon, rss_file, swap } = memory.peak;
        let metrics = ProcessMetrics {
            at_end: memory.at_end,
            peak_rss_anon: rss_anon,
            peak_rss_file: rss_file,
            peak_swap: swap,
            growth,
        };
        (Space::Process, SpaceMetrics::Process(metrics))
    });
    with_blocks.chain(of_process).collect()
}

fn iterations(record: &Record) -> Vec<SpaceIterations<'_>> {
    let with_blocks = record.spaces.iter().filter(|(space, _)| **space != Space::Process);
    let with_blocks = with_blocks.map(|(space, measured)| {
        SpaceIterations::Blocks(Iterations {
            space: *space,
            allocated: &measured.allocated,
            peak: &measured.peak,
            slope: measured.slope,
        })
    });
    let of_process = record.process.iter().map(|memory| {
        let series = |pick: fn(&Resident) -> u64| memory.iterations.iter().map(pick).collect();
        SpaceIterations::Process {
            space: Space::Process,
            rss_anon: series(|it| it.rss_anon),
            rss_file: series(|it| it.rss_file),
            swap: series(|it| it.swap),
        }
    });
    with_blocks.chain(of_process).collect()
}

#[derive(Debug, Serialize)]
struct Bookkeeping<'a> {
    package: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a Path>,
    level: Level,
    finding: &'a Finding,
}

#[derive(Debug, Serialize)]
struct SummaryLine<'a> {
    passed: usize,
    failed: usize,
    new: usize,
    not_measured: usize,
    ignored: usize,
    needs_review: usize,
    elsewhere: usize,
    not_run: usize,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Repeated>,
    denied: Vec<Code>,
    pending: &'a [PathBuf],
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorLine<'a>>,
}

#[derive(Debug, Serialize)]
struct ErrorLine<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> ErrorLine<'a> {
    fn of(failure: &'a Reported) -> Self {
        Self { message: &failure.message, hint: failure.hint.as_deref() }
    }
}

/// Repeated on request or because the figures differed.
#[derive(Debug, Serialize)]
struct Repeat {
    runs: usize,
    figures: Vec<Range>,
}

impl Repeat {
    fn of(repeats: &Repeats) -> Self {
        Self { runs: repeats.runs.len(), figures: repeats.ranges() }
    }
}

#[derive(Debug, Serialize)]
struct FollowedIterations<'a> {
    iterations: u32,
    seconds: f64,
    decided: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a str>,
}

impl<'a> FollowedIterations<'a> {
    fn of(followed: &'a record::Followed) -> Self {
        let record::Followed { iterations, seconds, decided, disturbed: _, ended } = followed;
        Self {
            iterations: *iterations,
            seconds: *seconds,
            decided: *decided,
            ended: ended.as_deref(),
        }
    }
}

/// Present only if the test was soaked.
#[derive(Debug, Serialize)]
struct SoakedIterations<'a> {
    /// Seconds, as the next field.
    asked: f64,
    seconds: f64,
    iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a str>,
}

impl<'a> SoakedIterations<'a> {
    fn of(soaked: &'a Soaked) -> Self {
        let Soaked { asked, taken, iterations, ended } = soaked;
        let seconds = |milliseconds: u64| milliseconds as f64 / 1_000.0;
        Self {
            asked: seconds(*asked),
            seconds: seconds(*taken),
            iterations: *iterations,
            ended: ended.as_deref(),
        }
    }
}

/// Present only if the body read unknown values of the simulated device.
#[derive(Debug, Serialize)]
struct UnknownValues<'a> {
    unknown_reads: u64,
    unknown_bytes: u64,
    at: Vec<&'a str>,
    sites: &'a [ReadSite],
}

impl<'a> UnknownValues<'a> {
    fn of(values: &'a UnknownReads) -> Self {
        let UnknownReads { reads, bytes, sites, unresolved: _ } = values;
        Self { unknown_reads: *reads, unknown_bytes: *bytes, at: values.lines(), sites }
    }
}

/// Present only for a test whose allocations were refused. Its failures are findings.
#[derive(Debug, Serialize)]
struct Refusals<'a> {
    allocations: u64,
    refused: u64,
    errors: u64,
    recovered: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a str>,
}

impl<'a> Refusals<'a> {
    fn of(sweep: &'a FaultSweep) -> Self {
        let FaultSweep { allocations, refused, errors, recovered, ended, .. } = sweep;
        Self {
            allocations: *allocations,
            refused: *refused,
            errors: *errors,
            recovered: *recovered,
            ended: ended.as_deref(),
        }
    }
}

pub(crate) struct JsonLines<W> {
    to: W,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to }
    }

    fn line(&mut self, line: &StreamLine<'_>) {
        let text = self::text(line);
        write_line(&mut self.to, &text);
    }
}

/// In one piece, so that a process that is killed leaves whole lines. `Stdout` keeps its errors,
/// and a `Vec` has none.
fn write_line(to: &mut impl Write, line: &str) {
    let _ = to.write_all(format!("{line}\n").as_bytes()).and_then(|()| to.flush());
}

impl<W: Write> Presenter for JsonLines<W> {
    fn leg_started(&mut self, leg: &Leg, tests: usize) {
        self.line(&StreamLine::RunStarted { version: VERSION, device: leg.name(), tests });
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
            marks: record.map_or(&[], |record| &record.marks),
            notes: record.map_or(&[], |record| &record.notes),
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
}

fn summary(tally: &Tally, exit_code: u8) -> SummaryLine<'_> {
    let Tally {
        passed,
        failed,
        new,
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
    escape(&text, Form::Json)
}

pub(in crate::presentation::presenters) fn print(line: &impl Serialize) {
    write_line(&mut Stdout, &text(line));
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
        let leg = Leg::new(device, crate::invocation::devices::DeviceKind::Sim, "");
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
