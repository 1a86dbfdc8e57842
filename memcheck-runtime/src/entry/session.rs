//! The process of one test: arms the probes, runs the body, judges the record,
//! writes the report, and leaves.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use memcheck_core::baseline::{self, Baseline, Figures};
use memcheck_core::device::{Family, Request};
use memcheck_core::finding::{Code, Finding};
use memcheck_core::limits::Limits;
use memcheck_core::protocol::{self, Follow, Job, Progress, Refusal, Report, Status};
use memcheck_core::record::{self, Facts, Outcome, Record};
use memcheck_core::space::Space;
use memcheck_core::variables::SIM_FAULTS;
use memcheck_core::{exit, fault, quiet, verdict};

use super::observe::{self, Beside};
use super::{across, anew, settings};
use crate::description::Description;
#[cfg(feature = "cuda")]
use crate::probe;
use crate::recorder::Recorder;
use crate::trial::{self, Case, Trial};
use crate::{attribution, block, canary, device, ledger, outcome, scope, site, snapshot};

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

/// An error of a device, which may name what is wrong with it.
fn about_the_device(why: String, certain: bool) -> Refusal {
    let device = certain || fault::of(&why).is_some();
    let hint = (!device).then(|| match std::env::var(SIM_FAULTS.name) {
        Ok(faults) if cfg!(feature = "sim") && !faults.is_empty() => format!(
            "{}={faults} asks for it: before each body the device is opened, and a block \
             allocated and freed to see that the probe sees it",
            SIM_FAULTS.name
        ),
        _ if verdict::says_out_of_memory(&why) => {
            "end what holds its memory, wait for it, or take another device".to_owned()
        }
        _ => "`nvidia-smi` and `dmesg | grep Xid` tell how the GPU is; `cargo memcheck doctor` \
              tries it, and `--device sim` needs none"
            .to_owned(),
    });
    Refusal { why, device, hint }
}

fn measure(description: &'static Description, job: &Job) -> Result<(Record, Baseline), Refusal> {
    let request = description.device_on(&job.device);
    let family = request.family().unwrap_or(Family::Cpu);
    let limits = settings::limits_of(description, family, job)?;
    let case = description.case_with(&job.case).map_err(|name| Refusal {
        why: format!("`{}` has no case `{name}`", description.path()),
        device: false,
        hint: None,
    })?;
    // Before anything that may hang: from here on the test's time is taken.
    let mut progress = job
        .progress
        .as_ref()
        .and_then(|path| std::fs::OpenOptions::new().write(true).open(path).ok());
    let of = limits.warmup.value.saturating_add(limits.iterations.value);
    trial::tell(&mut progress, &Progress { iteration: 0, of, live: 0 });
    ledger::prepare()?;
    device::prepare(&request, limits.fits.value)?;
    let beside = Beside::start(family == Family::Cuda && job.follow != Follow::No);
    let device = device::open(&request)
        .map_err(|error| about_the_device(error.to_string(), error.is_about_the_device()))?;
    start_pool();
    ledger::arm();
    let own = device::space(&device);
    let on_device = canary::on(&device).map_err(|error| {
        let others = observe::others(own);
        let why = format!("not a block can be allocated on `{request}`: {error}{others}");
        about_the_device(why, false)
    })?;
    let canaries = [(Space::Host, canary::on_host()), (own, on_device)];
    #[cfg(feature = "cuda")]
    {
        let told =
            |what: &str, error| about_the_device(format!("{what} `{request}`: {error}"), false);
        canary::taken_back(&device)
            .map_err(|error| told("the first block to be freed was not taken back by", error))?;
        probe::pool::reset_peak(&device)
            .map_err(|error| told("no measuring can begin with the memory pool of", error))?;
    }
    let scopes = if job.own_subscriber { scope::Install::Never } else { scope::Install::Now };
    let attribute = |modules| attribution::start(scopes, modules).map(Some);
    let attributor = match job.follow {
        Follow::No => None,
        Follow::Yes | Follow::Again(_) => attribute(None)?,
        Follow::Modules => attribute(Some(own))?,
    };
    ledger::reset();

    let mut trial = Trial::new(device.clone(), &limits, case.clone(), progress);
    let outcome = body(description, &mut trial);
    if attributor.is_some() && !job.own_subscriber && anew::is_wanted(&outcome) {
        let error = anew::begin(job);
        eprintln!("memcheck: it cannot be run anew: {error}");
    }
    let (mut recorder, others) = trial.into_parts();

    let judged = judged(own);
    let live = attributor.as_ref().map(|_| attribution::live());
    let mut record =
        assemble(description, (job, &request), limits, (case, outcome), &mut recorder, &judged);
    for (space, measured) in &mut record.spaces {
        measured.armed = canaries.iter().chain(&others).any(|canary| *canary == (*space, true));
    }
    beside.observe(&device, own, &mut record);
    if let Some(attributor) = attributor {
        let live = live.unwrap_or_default();
        record.attribution =
            attributor.finish((recorder.iterations(), &live), &judged, job.sources());
        if job.own_subscriber && scope::all().is_empty() {
            record.notes.push(anew::NO_SCOPES.to_owned());
        }
        if record.attribution.is_none() {
            record.notes.push("attribution broke down".to_owned());
        }
        record.note_peaks();
    }
    let baseline = if record.limits.baseline.value {
        snapshot::load(&snapshot::path(description, &job.workspace, family))
    } else {
        Baseline::Off
    };
    Ok((record, baseline))
}

/// Starts rayon's pool, which candle's CPU backend computes on: what a worker
/// allocates when it is born (its deque, some 2 KiB) is the pool's and not the
/// workload's, and a worker that is born late would make it a matter of luck.
fn start_pool() {
    rayon::broadcast(|_| ());
}

/// The body, with its panics caught and its allocations counted.
fn body(description: &Description, trial: &mut Trial) -> Outcome {
    // To print a panic resolves a backtrace, for which std keeps tens of MiB
    // for ever: that is not the workload's memory.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _quiet = quiet::enter();
        print(info);
    }));
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        quiet::lifted(|| site::within(|| (description.body)(trial)))
    }));
    match result {
        Ok(Ok(())) => Outcome::Returned,
        Ok(Err(error)) => {
            eprintln!("Error: {error}");
            Outcome::Failed { error }
        }
        Err(payload) => Outcome::Panicked { message: outcome::panic_message(&*payload) },
    }
}

/// The test's own space, and every other device that it allocated on.
fn judged(own: Space) -> Vec<Space> {
    if own == Space::Host {
        return vec![own];
    }
    block::spaces()
        .filter(|space| space.is_device())
        .filter(|space| *space == own || ledger::snapshot(*space).allocations > 0)
        .collect()
}

fn assemble(
    description: &Description,
    (job, request): (&Job, &Request),
    limits: Limits,
    (case, outcome): (Case, Outcome),
    recorder: &mut Recorder,
    judged: &[Space],
) -> Record {
    let family = request.family().unwrap_or(Family::Cpu);
    let case: BTreeMap<String, String> =
        case.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let dtype = case.get("dtype").cloned();
    let mut notes = Vec::new();
    if limits.iterations.value == 1 {
        notes.push("one iteration cannot show growth: at least two are needed".to_owned());
    }
    if outcome == Outcome::Returned && !recorder.has_started() {
        notes.push(
            "the body did not iterate: peak and retained bytes are measured, growth is not"
                .to_owned(),
        );
    }
    Record {
        version: record::VERSION,
        package: description.package.to_owned(),
        test: description.path(),
        case,
        device: request.to_string(),
        family,
        judged: judged.to_vec(),
        outcome,
        should_panic: description.should_panic.map(str::to_owned),
        facts: Facts {
            memcheck: baseline::VERSION,
            candle: job.candle.clone(),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            iterations: limits.iterations.value,
            warmup: limits.warmup.value,
            threads: (family == Family::Cpu).then(settings::threads),
            dtype,
        },
        limits,
        iterated: recorder.has_started(),
        iterations: recorder.measured(),
        spaces: recorder.finish(judged),
        capacities: device::capacities(request),
        lost_events: ledger::lost_events(),
        unsupported_calls: unsupported_calls(),
        notes,
        driver: Default::default(),
        marks: recorder.take_marks(),
        attribution: None,
    }
}

#[cfg(feature = "sim")]
pub(super) fn unsupported_calls() -> Vec<String> {
    memcheck_sim::unsupported_calls().into_iter().map(str::to_owned).collect()
}

#[cfg(not(feature = "sim"))]
pub(super) fn unsupported_calls() -> Vec<String> {
    Vec::new()
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
