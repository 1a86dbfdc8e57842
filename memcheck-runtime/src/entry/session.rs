//! The process of one test: has it measured, judges the record, writes the report,
//! and leaves.

use std::path::Path;

use memcheck_core::baseline::{Baseline, Figures};
use memcheck_core::finding::{Code, Finding};
use memcheck_core::protocol::{self, Follow, Job, Refusal, Report, Status};
use memcheck_core::record::Record;
use memcheck_core::{exit, quiet, verdict};

use super::across;
use super::measure::measure;
use crate::description::Description;
use crate::snapshot;

/// Runs the test of this process and leaves it: with 0 if it passed, with
/// [`exit::FAILED`] if not. Without a report, nothing has passed.
pub(super) fn run(description: &'static Description, job: &Job) -> ! {
    let _quiet = quiet::enter();
    let report = match measure(description, job) {
        Ok((record, baseline)) => judge(description, job, record, &baseline),
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
/// without a baseline, and one that measured what it is not to explain, leave
/// alone what is pending.
fn judge(description: &Description, job: &Job, record: Record, baseline: &Baseline) -> Report {
    let level =
        |code: Code| job.levels.get(&code).copied().unwrap_or_else(|| code.default_level(job.ci));
    let mut verdict = verdict::judge(&record, baseline, &record.limits, level);
    if job.alone {
        let across = across::findings(description, job, &record);
        verdict = verdict::conclude([verdict.findings, across].concat(), level);
    }
    let path = snapshot::path(description, &job.workspace, record.family);
    let mut pending = None;
    let kept = record.limits.baseline.value && is_expected(job, &record);
    if kept && !verdict::is_worth_keeping(&verdict) {
        // Nor are those of an earlier run: what it measured is not this code.
        snapshot::discard_pending(&job.workspace, &path);
    } else if kept {
        match snapshot::assert(description, &job.workspace, &record, baseline) {
            Ok(written) => pending = written,
            Err(error) => {
                let finding = Finding::new(
                    Code::NotMeasured,
                    format!("the pending snapshot could not be written: {error}"),
                );
                let mut findings = verdict.findings;
                findings.push(finding.hint("is the disk full, or the source tree read-only?"));
                verdict = verdict::conclude(findings, level);
            }
        }
    }
    Report {
        version: protocol::VERSION,
        snapshot: record.limits.baseline.value.then_some(path),
        record,
        verdict,
        pending,
    }
}

/// Whether a run that is to explain figures has measured these very figures.
fn is_expected(job: &Job, record: &Record) -> bool {
    match &job.follow {
        Follow::Again(figures) => *figures == Figures::of(record),
        Follow::No | Follow::Yes | Follow::Modules => true,
    }
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
