//! The objects of the stream, and the figures of a record in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::finding::{Code, Finding, Level};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::driver::{Occupant, Untracked};
use memcheck_core::measurement::fault_sweep::SweepResult;
use memcheck_core::measurement::phase::PhaseFigures;
use memcheck_core::measurement::process_memory::{MappedFile, Resident};
use memcheck_core::measurement::record::{self, Mark, Metrics, Record};
use memcheck_core::measurement::repeats::{Range, Repeats};
use memcheck_core::measurement::soak::Soaked;
use memcheck_core::measurement::unified::Unified;
use memcheck_core::measurement::unknown_reads::{ReadSite, UnknownReads};
use memcheck_core::presentation::digest::Digest;
use memcheck_core::shape::ScalingReport;
use memcheck_core::space::Space;
use serde::Serialize;

use crate::execution::proof::{CheckedProof, ProofState};
use crate::presentation::origin::RunOrigin;
use crate::presentation::tally::Repeated;
use crate::system::error::Reported;
use crate::system::gpus::RanOn;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum StreamLine<'a> {
    RunStarted {
        version: u32,
        device: String,
        tests: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<&'a RunOrigin>,
    },
    Proof(ProofLine<'a>),
    TestFinished(Box<TestFinished<'a>>),
    Bookkeeping(Bookkeeping<'a>),
    Summary(SummaryLine<'a>),
}

/// The result of `doctor` on a device like that of the leg.
#[derive(Debug, Serialize)]
pub(super) struct ProofLine<'a> {
    /// Of the leg. The proof names its own device.
    pub(super) leg: String,
    pub(super) state: ProofState,
    #[serde(flatten)]
    pub(super) proof: &'a CheckedProof,
}

#[derive(Debug, Serialize)]
pub(super) struct TestFinished<'a> {
    pub(super) package: &'a str,
    pub(super) binary: &'a str,
    pub(super) test: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) case: &'a BTreeMap<String, String>,
    /// The first judged space if it is a GPU; otherwise `cuda:0` or `cpu`, according to the device
    /// family.
    pub(super) device: String,
    pub(super) leg: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gpu: Option<&'a RanOn>,
    pub(super) status: Status,
    /// Wall time of the test process.
    pub(super) seconds: f64,
    pub(super) findings: &'a [Finding],
    #[serde(skip_serializing_if = "<[Code]>::is_empty")]
    pub(super) denied: &'a [Code],
    pub(super) metrics: BTreeMap<Space, SpaceMetrics>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) estimates: Vec<&'static str>,
    pub(super) iterations: Vec<SpaceIterations<'a>>,
    /// Mapped by the body.
    #[serde(skip_serializing_if = "<[MappedFile]>::is_empty")]
    pub(super) mapped_files: &'a [MappedFile],
    /// Present only if host and device share one memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unified: Option<&'a Unified>,
    pub(super) limits: &'a Limits,
    /// By the name of the phase.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) phases: BTreeMap<&'a str, BTreeMap<Space, PhaseFigures>>,
    #[serde(skip_serializing_if = "<[Mark]>::is_empty")]
    pub(super) marks: &'a [Mark],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) followed: Option<FollowedIterations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) soaked: Option<SoakedIterations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) values: Option<UnknownValues<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault_sweep: Option<Refusals<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<Repeat>,
    pub(super) growth: BTreeMap<Space, Growth>,
    /// Outside the driver's pool. Present only for a test with attribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) untracked: Option<&'a Untracked>,
    #[serde(skip_serializing_if = "<[Occupant]>::is_empty")]
    pub(super) others: &'a [Occupant],
    /// Present only for the largest case.
    #[serde(skip_serializing_if = "<[ScalingReport]>::is_empty")]
    pub(super) laws: &'a [ScalingReport],
    /// Present only for a test with attribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attribution: Option<Digest<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) snapshot: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<&'a Path>,
}

#[derive(Debug, Serialize)]
pub(super) struct IterationSeries<'a> {
    pub(super) space: Space,
    pub(super) allocated: &'a [u64],
    pub(super) peak: &'a [u64],
    pub(super) slope: f64,
}

/// The process has no blocks, and so other figures than the other spaces.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum SpaceMetrics {
    Blocks(Metrics),
    Process(ProcessMetrics),
}

#[derive(Debug, Serialize)]
pub(super) struct ProcessMetrics {
    #[serde(flatten)]
    pub(super) at_end: Resident,
    pub(super) peak_rss_anon: u64,
    pub(super) peak_rss_file: u64,
    pub(super) peak_swap: u64,
    /// Present only if a limit judges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) growth: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum SpaceIterations<'a> {
    Blocks(IterationSeries<'a>),
    Process { space: Space, rss_anon: Vec<u64>, rss_file: Vec<u64>, swap: Vec<u64> },
}

pub(super) fn metrics(record: &Record) -> BTreeMap<Space, SpaceMetrics> {
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

/// The figures of phases in the judged spaces.
pub(super) fn phases(record: &Record) -> BTreeMap<&str, BTreeMap<Space, PhaseFigures>> {
    let mut phases: BTreeMap<&str, BTreeMap<Space, PhaseFigures>> = BTreeMap::new();
    for space in &record.judged {
        for (name, figures) in record.spaces.get(space).into_iter().flat_map(|it| &it.phases) {
            phases.entry(name).or_default().insert(*space, *figures);
        }
    }
    phases
}

pub(super) fn iterations(record: &Record) -> Vec<SpaceIterations<'_>> {
    let with_blocks = record.spaces.iter().filter(|(space, _)| **space != Space::Process);
    let with_blocks = with_blocks.map(|(space, measured)| {
        SpaceIterations::Blocks(IterationSeries {
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
pub(super) struct Bookkeeping<'a> {
    pub(super) package: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<&'a Path>,
    pub(super) level: Level,
    pub(super) finding: &'a Finding,
}

#[derive(Debug, Serialize)]
pub(super) struct SummaryLine<'a> {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) new: usize,
    pub(super) not_measured: usize,
    pub(super) ignored: usize,
    pub(super) needs_review: usize,
    pub(super) elsewhere: usize,
    pub(super) not_run: usize,
    pub(super) interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<Repeated>,
    pub(super) denied: Vec<Code>,
    pub(super) pending: &'a [PathBuf],
    pub(super) exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorLine<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ErrorLine<'a> {
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<&'a str>,
}

impl<'a> ErrorLine<'a> {
    pub(super) fn of(failure: &'a Reported) -> Self {
        Self { message: &failure.message, hint: failure.hint.as_deref() }
    }
}

/// Repeated on request or because the figures differed.
#[derive(Debug, Serialize)]
pub(super) struct Repeat {
    pub(super) runs: usize,
    pub(super) figures: Vec<Range>,
}

impl Repeat {
    pub(super) fn of(repeats: &Repeats) -> Self {
        Self { runs: repeats.runs.len(), figures: repeats.ranges() }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct FollowedIterations<'a> {
    pub(super) iterations: u32,
    pub(super) seconds: f64,
    pub(super) decided: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<&'a str>,
}

impl<'a> FollowedIterations<'a> {
    pub(super) fn of(followed: &'a record::Followed) -> Self {
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
pub(super) struct SoakedIterations<'a> {
    /// Seconds, as the next field.
    pub(super) asked: f64,
    pub(super) seconds: f64,
    pub(super) iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<&'a str>,
}

impl<'a> SoakedIterations<'a> {
    pub(super) fn of(soaked: &'a Soaked) -> Self {
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
pub(super) struct UnknownValues<'a> {
    pub(super) unknown_reads: u64,
    pub(super) unknown_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) further_unknown_reads: Option<u64>,
    pub(super) at: Vec<&'a str>,
    pub(super) sites: &'a [ReadSite],
}

impl<'a> UnknownValues<'a> {
    pub(super) fn of(values: &'a UnknownReads) -> Self {
        let UnknownReads { reads, bytes, further, sites, unresolved: _ } = values;
        Self {
            unknown_reads: *reads,
            unknown_bytes: *bytes,
            further_unknown_reads: (*further > 0).then_some(*further),
            at: values.lines(),
            sites,
        }
    }
}

/// Present only for a test whose allocations were refused. Its failures are findings.
#[derive(Debug, Serialize)]
pub(super) struct Refusals<'a> {
    pub(super) allocations: u64,
    pub(super) refused: u64,
    pub(super) errors: u64,
    pub(super) recovered: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<&'a str>,
}

impl<'a> Refusals<'a> {
    pub(super) fn of(sweep: &'a SweepResult) -> Self {
        let SweepResult { allocations, refused, errors, recovered, ended, .. } = sweep;
        Self {
            allocations: *allocations,
            refused: *refused,
            errors: *errors,
            recovered: *recovered,
            ended: ended.as_deref(),
        }
    }
}
