//! The process of a fault sweep. Its report has the refusals only: the figures of the test come
//! from other processes. The report is written before each refusal, so that it shows the refusal
//! that ended the process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memcheck_core::judgement::verdict::gist;
use memcheck_core::measurement::fault_sweep::SweepResult;
use memcheck_core::measurement::record::{Outcome, Record};
use memcheck_core::quiet;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::{self, Follow, Job, Measurement, Refusal};
use memcheck_ledger::site;

use super::measure::{Ready, empty_record};
use super::session::exit_without_report;
use super::{body, job, session};
use crate::description::Description;
use crate::executable::sources;
use crate::fault_sweep::{Settings, Sweep};
use crate::os::Silence;
use crate::trial::Trial;

/// The share of its time-out that a sweep may take, so that it ends before it is killed.
const SHARE: f64 = 0.9;

/// Runs the sweep and exits: with 0 if the report is complete.
pub(super) fn run(description: &'static Description, job: &Job) -> ! {
    let _quiet = quiet::enter();
    let written = sweep(description, job).and_then(|swept| session::write(&job.report, &swept));
    match written {
        Ok(()) => std::process::exit(i32::from(exit::OK)),
        Err(refusal) => exit_without_report(&job.report, &refusal),
    }
}

fn sweep(description: &'static Description, job: &Job) -> Result<Measurement, Refusal> {
    let began = Instant::now();
    let (case, progress) = super::measure::begin(description, job)?;
    // Blocks need call stacks, but no events and no tensors.
    let counting = Job { follow: Follow::No, ..job.clone() };
    let request = description.device_on(&job.device);
    let ready = Ready::prepare(&counting, &request, &job.limits)?;
    if job.follow != Follow::No {
        site::start()?;
    }
    let record = empty_record(description, (job, &request), case.clone(), ready.own());
    let report = move |fault_sweep: SweepResult| Measurement {
        version: protocol::VERSION,
        record: Record { fault_sweep: Some(fault_sweep), ..record.clone() },
        unresolved: None,
    };
    let so_far = report.clone();
    let path = job.report.clone();
    let write = move |result: &SweepResult| write_quickly(&path, &so_far(result.clone()));
    let settings = Settings {
        sweep: job.limits.fault_sweep.value,
        deadline: began + Duration::from_secs_f64(job.limits.timeout.value.as_secs_f64() * SHARE),
        file: description.file,
        sources: sources(job.sources()),
        write: Arc::new(write),
    };
    let mut trial = Trial::new(ready.device(), (&job.limits, job.reach), case, progress)
        .sweeping(Sweep::new(settings));
    // A sweep prints as much as all its iterations.
    let silence = Silence::begin();
    let outcome = body::run(description, &mut trial);
    drop(silence);
    let mut result = trial.into_sweep().unwrap_or_default();
    if let (None, 0, Some(error)) = (&result.ended, result.selected, error_of(&outcome)) {
        result.ended = Some(format!("the body ended before its iterations: {}", gist(error)));
    }
    Ok(report(result))
}

fn error_of(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Returned => None,
        Outcome::Failed { error: text } | Outcome::Panicked { message: text } => Some(text),
    }
}

/// Without a wait for the disk, because it is written at each refusal. A report that cannot be
/// written is missing only if the process dies.
fn write_quickly(path: &Path, report: &Measurement) {
    job::end_if_forked();
    let partial = path.with_extension("part");
    let Ok(text) = serde_json::to_vec(report) else { return };
    if std::fs::write(&partial, text).is_ok() {
        let _ = std::fs::rename(&partial, path);
    }
}
