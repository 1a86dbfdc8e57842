//! The process of one test: measures the test, writes what it has measured, and exits.

use std::path::Path;

use memcheck_core::quiet;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::{self, Job, Measurement, Refusal};

use super::job;
use super::measure::measure;
use crate::description::Description;

/// Runs the test of this process and exits, with 0 if the measurement is complete. A test without a
/// measurement has not passed.
pub(super) fn run(description: &'static Description, job: &Job) -> ! {
    let _quiet = quiet::enter();
    let written = measure(description, job).and_then(|measured| write(&job.report, &measured));
    match written {
        Ok(()) => std::process::exit(i32::from(exit::OK)),
        Err(refusal) => exit_without_report(&job.report, &refusal),
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

/// Writes the measurement to a file in the same folder and renames it, so that a reader never sees
/// a part of it.
pub(super) fn write(path: &Path, measured: &Measurement) -> Result<(), Refusal> {
    write_whole(path, measured).map_err(|error| Refusal {
        why: format!("the report could not be written: {error}"),
        device: false,
        hint: None,
    })
}

fn write_whole(path: &Path, measured: &Measurement) -> std::io::Result<()> {
    use std::io::Write;
    job::end_if_forked();
    let partial = path.with_extension("part");
    let mut file = std::fs::File::create(&partial)?;
    file.write_all(&serde_json::to_vec(measured)?)?;
    file.sync_all()?;
    std::fs::rename(&partial, path)
}
