//! The process of one test: measures the test, judges the record, writes the report and exits. The
//! command judges records with call stacks, because it looks up their names. Without a command,
//! this process must do both.

use std::path::Path;

use memcheck_core::growth::survivors::Growth;
use memcheck_core::judgement::baseline::Figures;
use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::judgement::{blame, verdict};
use memcheck_core::measurement::quiet;
use memcheck_core::measurement::record::Record;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::{self, Follow, Job, Reach, Refusal, Report};
use memcheck_symbols::Symbols;

use super::measure::{Measured, measure};
use super::{job, relations};
use crate::description::Description;
use crate::{os, snapshot};

/// Runs the test of this process and exits: with 0 if the test passed, with [`exit::FAILED`] if it
/// failed. A test without a report has not passed.
pub(super) fn run(description: &'static Description, job: &Job) -> ! {
    let _quiet = quiet::enter();
    let report = match measure(description, job) {
        Ok(measured) => report(description, job, measured),
        Err(refusal) => exit_without_report(&job.report, &refusal),
    };
    let failed = matches!(report.verdict.status, Status::Failed | Status::NotMeasured);
    match write(&job.report, &report) {
        Ok(()) => std::process::exit(i32::from(if failed { exit::FAILED } else { exit::OK })),
        Err(error) => {
            let why = format!("the report could not be written: {error}");
            exit_without_report(&job.report, &Refusal { why, device: false, hint: None })
        }
    }
}

/// Exits without a report. The reason is printed and also written to a file next to the report's
/// path.
pub(super) fn exit_without_report(report: &Path, refusal: &Refusal) -> ! {
    job::end_if_forked();
    eprintln!("memcheck: {}", refusal.why);
    if let Some(hint) = &refusal.hint {
        eprintln!("hint: {hint}");
    }
    // If this cannot be written either, the command still has the exit status.
    let text = serde_json::to_vec(refusal).unwrap_or_default();
    let _ = std::fs::write(protocol::refusal(report), text);
    std::process::exit(i32::from(exit::NOT_MEASURED))
}

/// Judges the record and writes its figures as a pending snapshot if they are new.
///
/// An existing pending snapshot stays unchanged in a run without a baseline and in a run that
/// measured other figures than those that it must explain. It is removed if another run must decide
/// the growth, or if the findings show that the figures must not be accepted. If the command judges
/// the record, new figures are pending until then, and the command removes them if the record
/// breaks a limit.
fn report(description: &Description, job: &Job, measured: Measured) -> Report {
    let level =
        |code: Code| job.levels.get(&code).copied().unwrap_or_else(|| code.default_level(job.ci));
    let Measured { mut record, mut attribution, baseline } = measured;
    let is_expected = has_expected_figures(job, &mut record);
    if job.alone
        && let Some(unresolved) = attribution.take()
    {
        let mut symbols = Symbols::open(&os::executable());
        record.attribute(unresolved, |call| symbols.frames(call));
        blame::note_once(&mut record);
    }
    if job.alone && record.has_unnamed_lines() {
        let mut symbols = Symbols::open(&os::executable());
        record.name_lines(|call| symbols.frames(call));
    }
    let mut findings = match attribution {
        None if !record.has_unnamed_lines() => {
            verdict::judge(&record, &baseline, &record.limits, level).findings
        }
        _ => Vec::new(),
    };
    if job.alone {
        findings.extend(relations::findings(description, job, &record));
    }
    let path = snapshot::path(description, job.roots(), record.family);
    let mut pending = None;
    let is_extended = job.reach == Reach::Horizon && job.follow == Follow::Yes;
    if is_extended || matches!(job.reach, Reach::Soak(_)) {
        // The figures to accept are those of the runs before.
    } else if record.is_undecided() {
        // The run that decides writes its figures. Figures of an earlier run belong to older code.
        snapshot::discard_pending(job.roots(), &path);
    } else if record.limits.baseline.value && is_expected {
        if verdict::is_worth_keeping(&findings) {
            match snapshot::keep(description, job, &record, &baseline) {
                Ok(written) => pending = written,
                Err(error) => findings.push(verdict::unwritten("snapshot", error)),
            }
        } else {
            // Pending figures of an earlier run are removed too, because they belong to older code.
            snapshot::discard_pending(job.roots(), &path);
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

/// True if the run has measured the figures that it must explain, or has none to explain. Figures
/// that this run cannot measure are copied into the record: a run of more iterations decided the
/// growth, and a run of more iterations has another peak.
fn has_expected_figures(job: &Job, record: &mut Record) -> bool {
    let Some(expected) = &job.expected else { return true };
    match job.reach {
        Reach::Decision | Reach::Soak(_) => expected.put(&["peak_allocated", "retained"], record),
        Reach::Screen | Reach::Faults | Reach::Horizon => {
            expected.put(&["growth"], record);
            for measured in record.spaces.values_mut() {
                if measured.growth == Growth::Unknown {
                    // Another run has decided the growth.
                    measured.growth = Growth::default();
                }
            }
        }
    }
    let without_growth = |figures: &Figures| {
        let mut figures = figures.clone();
        for by_name in figures.0.values_mut() {
            by_name.remove("growth");
        }
        figures
    };
    without_growth(expected) == without_growth(&Figures::of(record))
}

/// Writes the report to a file in the same folder and renames it, so that a reader never sees a
/// part of it.
pub(super) fn write(path: &Path, report: &Report) -> std::io::Result<()> {
    use std::io::Write;
    job::end_if_forked();
    let partial = path.with_extension("part");
    let mut file = std::fs::File::create(&partial)?;
    file.write_all(&serde_json::to_vec(report)?)?;
    file.sync_all()?;
    std::fs::rename(&partial, path)
}
