//! The process of one test: has it measured, judges the record, writes the report,
//! and leaves. A record with call stacks is judged by the command, which looks up
//! their names; without a command, this process does both.

use std::path::Path;

use memcheck_core::baseline::Figures;
use memcheck_core::finding::Code;
use memcheck_core::protocol::{self, Job, Reach, Refusal, Report, Status};
use memcheck_core::record::Record;
use memcheck_core::survivors::Growth;
use memcheck_core::{blame, exit, quiet, verdict};
use memcheck_symbols::Symbols;

use super::across;
use super::measure::{Measured, measure};
use crate::description::Description;
use crate::snapshot;

/// The file that this process was started from.
const EXECUTABLE: &str = "/proc/self/exe";

/// Runs the test of this process and leaves it: with 0 if it passed, with
/// [`exit::FAILED`] if not. Without a report, nothing has passed.
pub(super) fn run(description: &'static Description, job: &Job) -> ! {
    let _quiet = quiet::enter();
    let report = match measure(description, job) {
        Ok(measured) => report(description, job, measured),
        Err(refusal) => leave(&job.report, &refusal),
    };
    let failed = matches!(report.verdict.status, Status::Failed | Status::NotMeasured);
    match write(&job.report, &report) {
        Ok(()) => std::process::exit(i32::from(if failed { exit::FAILED } else { exit::OK })),
        Err(error) => {
            let why = format!("the report could not be written: {error}");
            leave(&job.report, &Refusal { why, device: false, hint: None })
        }
    }
}

/// Leaves without a report, and says why: to people, and in its place.
pub(super) fn leave(report: &Path, refusal: &Refusal) -> ! {
    eprintln!("memcheck: {}", refusal.why);
    if let Some(hint) = &refusal.hint {
        eprintln!("hint: {hint}");
    }
    // Who cannot write this either finds the exit status.
    let text = serde_json::to_vec(refusal).unwrap_or_default();
    let _ = std::fs::write(protocol::refusal(report), text);
    std::process::exit(i32::from(exit::NOT_MEASURED))
}

/// Judges the record, and keeps its figures as pending where they are new. A run
/// without a baseline, one that measured what it is not to explain, and one whose
/// growth is to be decided by another run leave alone what is pending. New figures
/// whose record the command judges are pending until then, and it removes them where
/// the record breaks a limit.
fn report(description: &Description, job: &Job, measured: Measured) -> Report {
    let level =
        |code: Code| job.levels.get(&code).copied().unwrap_or_else(|| code.default_level(job.ci));
    let Measured { mut record, mut attribution, baseline } = measured;
    let is_expected = takes_expected(job, &mut record);
    if job.alone
        && let Some(unresolved) = attribution.take()
    {
        let mut symbols = Symbols::open(Path::new(EXECUTABLE));
        record.attribute(unresolved, |call| symbols.frames(call));
        blame::note_once(&mut record);
    }
    let mut findings = match attribution {
        Some(_) => Vec::new(),
        None => verdict::judge(&record, &baseline, &record.limits, level).findings,
    };
    if job.alone {
        findings.extend(across::findings(description, job, &record));
    }
    let path = snapshot::path(description, &job.workspace, record.family);
    let mut pending = None;
    if record.is_undecided() {
        // The run that decides keeps its figures. Those of an earlier run are not of this code.
        snapshot::discard_pending(&job.workspace, &path);
    } else if record.limits.baseline.value && is_expected {
        if verdict::is_worth_keeping(&findings) {
            match snapshot::assert(description, &job.workspace, &record, &baseline) {
                Ok(written) => pending = written,
                Err(error) => findings.push(verdict::unwritten("snapshot", error)),
            }
        } else {
            // Nor are those of an earlier run: what it measured is not this code.
            snapshot::discard_pending(&job.workspace, &path);
        }
    }
    Report {
        version: protocol::VERSION,
        snapshot: record.limits.baseline.value.then_some(path),
        verdict: verdict::conclude(findings, level),
        unresolved: attribution.map(Box::new),
        record,
        pending,
    }
}

/// True if the run has measured the figures that it explains, or explains none. The
/// record takes over figures that such a run cannot measure: the growth was decided by a
/// run of more iterations, and a run of more iterations has another peak.
fn takes_expected(job: &Job, record: &mut Record) -> bool {
    let Some(expected) = &job.expected else { return true };
    match job.reach {
        Reach::Decision => expected.put(&["peak_allocated", "retained"], record),
        Reach::Screen | Reach::Horizon => {
            expected.put(&["growth"], record);
            for measured in record.spaces.values_mut() {
                if measured.growth == Growth::Unknown {
                    // Another run has decided it.
                    measured.growth = Growth::default();
                }
            }
        }
    }
    let but_growth = |figures: &Figures| {
        let mut figures = figures.clone();
        for by_name in figures.0.values_mut() {
            by_name.remove("growth");
        }
        figures
    };
    but_growth(expected) == but_growth(&Figures::of(record))
}

/// Writes the report whole: to a file beside it, then renamed.
pub(super) fn write(path: &Path, report: &Report) -> std::io::Result<()> {
    use std::io::Write;
    let beside = path.with_extension("part");
    let mut file = std::fs::File::create(&beside)?;
    file.write_all(&serde_json::to_vec(report)?)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
