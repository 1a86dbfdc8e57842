//! Profiles a program without a test. The program is followed from before `main` to its exit, and
//! writes a report that has no iterations to judge. A bench is not followed: its device is
//! prepared, and the bench does its own measurements.
//!
//! ```text
//! before main   start    the simulated machine, the probes, attribution
//! exit          finish   the record, the report (also after `process::exit`)
//! ```
//!
//! A process that the program starts inherits the job and finds it already claimed. A process that
//! the program forks ends without an effect. Neither writes a report.

use std::fs::OpenOptions;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Mutex;

use memcheck_core::device::Family;
use memcheck_core::judgement::baseline;
use memcheck_core::measurement::record::{self, Facts, Outcome, Record};
use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::{self, Measurement, ProgramJob, Reach, Refusal};
use memcheck_ledger::{self as ledger, block};

use super::{measure, open, session, settings};
use crate::attribution::{self, Attributor};
use crate::recorder::Recorder;
use crate::{canary, forked, live, os, progress, reads, scope, unsimulated};

/// The state of a program that is being followed.
struct FollowedProgram {
    job: ProgramJob,
    /// The path of the report.
    path: PathBuf,
    attributor: Attributor,
    /// The spaces of the host that are counted; true if their probe saw its canary.
    host: Vec<(Space, bool)>,
}

static FOLLOWING: Mutex<Option<FollowedProgram>> = Mutex::new(None);

/// Starts to follow this process, unless an ancestor of it has already claimed the job. If the
/// process cannot be followed, it exits with an error.
pub(super) fn start(job: &str) {
    let _quiet = quiet::enter();
    let job = match serde_json::from_str::<ProgramJob>(job) {
        Ok(job) if job.version == protocol::VERSION => job,
        Ok(_) | Err(_) => {
            eprintln!(
                "memcheck: the program was started by another version of memcheck: use the same \
                 version of cargo-memcheck and memcheck-runtime"
            );
            std::process::exit(i32::from(exit::NOT_MEASURED))
        }
    };
    let Some(report) = job.report.clone() else {
        if let Err(error) = prepare(&job) {
            eprintln!("memcheck: {error}");
            std::process::exit(i32::from(exit::NO_DEVICE))
        }
        return;
    };
    // Only the first process creates this file.
    let claim = OpenOptions::new().write(true).create_new(true).open(protocol::claim(&report));
    if claim.is_err() {
        return;
    }
    if let Err(why) = follow(job, report.clone()) {
        session::exit_without_report(&report, &Refusal { why, device: false, hint: None });
    }
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Prepares the device and the probes.
fn prepare(job: &ProgramJob) -> Result<(), String> {
    open::prepare(&job.device, &job.limits).map_err(error_text)?;
    ledger::prepare().map_err(error_text)?;
    ledger::arm();
    Ok(())
}

fn follow(job: ProgramJob, path: PathBuf) -> Result<(), String> {
    prepare(&job)?;
    let mut host = vec![(Space::Host, canary::on_host())];
    // PERF: with call stacks, small blocks would slow down a program whose GPU is judged.
    if job.device.family() != Some(Family::Cuda) {
        ledger::count_small();
        host.push((Space::HostSmall, canary::on_host_small()));
    }
    let attributor = attribution::start(scope::Install::Late, None).map_err(error_text)?;
    if let Some(listener) = &job.live {
        let listener = progress::open(listener).map_err(error_text)?;
        live::start(listener, &job.workspace).map_err(error_text)?;
    }
    let following = FollowedProgram { job, path, attributor, host };
    *FOLLOWING.lock().map_err(error_text)? = Some(following);
    if !os::at_exit(at_exit) {
        return Err("the system refused to register an exit handler".to_owned());
    }
    // Last, so that the set-up of memcheck is in no figure.
    ledger::reset();
    reads::start();
    unsimulated::start();
    Ok(())
}

/// Runs after the exit handlers of the program, because they were registered later.
extern "C" fn at_exit() {
    // Another thread may have held the lock when the program forked.
    if forked::is_child() {
        return;
    }
    let _quiet = quiet::enter();
    let following = FOLLOWING.lock().ok().and_then(|mut following| following.take());
    let Some(following) = following else { return };
    // A handler of the C library must not unwind.
    let reported = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let path = following.path.clone();
        session::write(&path, &measurement(following))
    }));
    match reported {
        Ok(Ok(())) => {}
        Ok(Err(refusal)) => eprintln!("memcheck: {}", refusal.why),
        Err(_) => eprintln!("memcheck: the report could not be written, because memcheck panicked"),
    }
}

fn measurement(following: FollowedProgram) -> Measurement {
    let FollowedProgram { job, attributor, host, .. } = following;
    let family = job.device.family().unwrap_or(Family::Cpu);
    let mut recorder = Recorder::new(Space::Host, Reach::Screen, &job.limits);
    let judged = judged(family, &host);
    let live = attribution::live_blocks();
    let mut spaces = recorder.finish(&judged);
    for (space, measured) in &mut spaces {
        // An allocation proves that the probe is armed. A canary would have to open the device in
        // memcheck's own name.
        let seen = || ledger::snapshot(*space).allocations > 0;
        let canary = host.iter().find(|(of, _)| of == space);
        measured.armed = canary.map_or_else(seen, |(_, seen)| *seen);
    }
    let attribution = attributor.finish((recorder.iterations(), live), &judged, &job.workspace);
    let mut notes = match attribution {
        Some(_) => Vec::new(),
        None => vec![
            "call sites are missing, because the thread that collects them panicked".to_owned(),
        ],
    };
    notes.extend(unsimulated::finish());
    let record = Record {
        version: record::VERSION,
        package: job.package.clone(),
        test: job.program.clone(),
        case: Default::default(),
        device: job.device.to_string(),
        family,
        judged,
        outcome: Outcome::Returned,
        should_panic: None,
        facts: Facts {
            memcheck: baseline::VERSION,
            candle: job.candle.clone(),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            iterations: 0,
            warmup: 0,
            threads: (family == Family::Cpu).then(settings::threads),
            dtype: None,
            arch: (family == Family::Cpu).then(Facts::arch_of_host).flatten(),
            features: None,
        },
        limits: job.limits.clone(),
        phase_limits: Default::default(),
        iterated: false,
        iterations: 0,
        followed: None,
        can_go_on: false,
        soaked: None,
        spaces,
        capacities: open::capacities(&job.device),
        lost_events: ledger::lost_events(),
        events_of_unknown_gpus: ledger::events_of_unknown_gpus(),
        unsupported_calls: measure::unsupported_calls(),
        failed_assert: measure::failed_assert(),
        notes,
        driver: Default::default(),
        fault_sweep: None,
        values: reads::finish(&job.workspace),
        process: recorder.take_process(),
        unified: open::unified(&job.device),
        marks: Vec::new(),
        attribution: None,
        longer: None,
        repeats: None,
        ended_at: None,
        remarks: Vec::new(),
    };
    let unresolved = attribution.map(Box::new);
    Measurement { version: protocol::VERSION, record, unresolved }
}

/// The devices on which the program has allocated; the counted spaces of the host if there are none.
fn judged(family: Family, host: &[(Space, bool)]) -> Vec<Space> {
    let used = |space: &Space| space.is_of_driver() && ledger::snapshot(*space).allocations > 0;
    let devices: Vec<Space> = match family {
        Family::Cuda => block::spaces().filter(used).collect(),
        Family::Cpu => Vec::new(),
    };
    match devices.is_empty() {
        true => host.iter().map(|(space, _)| *space).collect(),
        false => devices,
    }
}
