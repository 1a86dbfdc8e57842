//! The measurement of a test in its own process: prepares the device and the probes, runs the body,
//! and makes a record of everything that was counted.

use std::collections::BTreeMap;

use memcheck_core::device::{Family, Request};
use memcheck_core::judgement::baseline;
use memcheck_core::judgement::{fault, verdict};
use memcheck_core::limits::Limits;
use memcheck_core::measurement::attribution::Unresolved;
use memcheck_core::measurement::record::{self, Facts, Outcome, Record};
use memcheck_core::measurement::unified::Unified;
use memcheck_core::request::variables::SIM_FAULTS;
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::{self, Follow, Job, Measurement, Progress, Reach, Refusal};
use memcheck_ledger::{self as ledger, c_heap};

use super::observe::{self, OtherCounters};
use super::pool::Pool;
use super::{body, open, restart, rounds, settings};
use crate::attribution::Attributor;
use crate::description::Description;
use crate::device::{self, Device};
use crate::operations::Operations;
use crate::os::KeptFile;
#[cfg(feature = "cuda")]
use crate::probe;
use crate::recorder::Recorder;
use crate::trial::{Case, Trial};
use crate::{attribution, canary, judged, last_state, live, reads, scope, unsimulated};

/// The case of the job, and its listener, which hears that the test begins.
pub(super) fn begin(
    description: &'static Description,
    job: &Job,
) -> Result<(Case, Option<KeptFile>), Refusal> {
    let limits = &job.limits;
    let case = description.case_with(&job.case).map_err(|name| Refusal {
        why: format!("`{name}` is not a parameter of `{}`", description.path()),
        device: false,
        hint: None,
    })?;
    // Must come before anything that may hang, because the test's time begins with this report.
    let mut progress = job.progress.as_ref().and_then(|path| crate::progress::open(path).ok());
    let of = limits.warmup.value.saturating_add(limits.iterations.value);
    crate::progress::report(&mut progress, &Progress { iteration: 0, of, ..Progress::default() });
    Ok((case, progress))
}

pub(super) fn measure(
    description: &'static Description,
    job: &Job,
) -> Result<Measurement, Refusal> {
    let request = description.device_on(&job.device);
    let limits = job.limits.clone();
    let (case, mut progress) = begin(description, job)?;
    last_state::begin(description.file, job);
    // Before the counters are reset, because a new thread allocates a few bytes.
    if let Some(listener) = progress.take_if(|_| job.live) {
        live::start(listener, job.sources())?;
    }
    let ready = Ready::prepare(job, &request, &limits)?;
    let reach = (&limits, job.reach);
    let mut trial = Trial::new(ready.device.clone(), reach, case.clone(), progress);
    let case_again = case.clone();
    let operations = Operations::now();
    reads::start();
    unsimulated::start();
    let outcome = body::run(description, &mut trial);
    let values = reads::finish(job.sources());
    let launches = unsimulated::finish();
    if ready.attributor.is_some() && !job.own_subscriber && restart::is_needed(&outcome) {
        let error = restart::exec_again(job);
        eprintln!("memcheck: the test cannot be run again: {error}");
    }
    let device = ready.device.clone();
    let (mut record, attribution) = ready.record(
        trial,
        &limits.clone(),
        |recorder, judged| {
            assemble(description, (job, &request), limits, (case, outcome), recorder, judged)
        },
        job,
    );
    record.values = values;
    record.notes.extend(launches);
    if !matches!(job.reach, Reach::Decision | Reach::Soak(_)) {
        // After the record is complete, because a further round changes every counter.
        let again = (&device, case_again, operations);
        rounds::run_further(description, again, &mut record);
    }
    let unresolved = attribution.map(Box::new);
    Ok(Measurement { version: protocol::VERSION, record, unresolved })
}

/// A process that is ready to measure a body.
pub(super) struct Ready {
    device: Device,
    own: Space,
    pool: Pool,
    /// The spaces whose probe was tested with a canary; true if it saw the block come and go.
    canaries: Vec<(Space, bool)>,
    counters: OtherCounters,
    /// The name of the card, if it shares the memory of the host.
    unified: Option<String>,
    attributor: Option<Attributor>,
}

impl Ready {
    /// Opens the device, arms the probes and proves with canaries that they see blocks.
    pub(super) fn prepare(job: &Job, request: &Request, limits: &Limits) -> Result<Self, Refusal> {
        let on_gpu = request.family() == Some(Family::Cuda);
        ledger::prepare()?;
        open::prepare(request, limits)?;
        let counters = OtherCounters::start(on_gpu && job.follow != Follow::No);
        let device = open::device(request)
            .map_err(|error| device_refusal(error.to_string(), error.is_device_fault()))?;
        let pool = Pool::start();
        let unified = unified(&device).map_err(|error| {
            device_refusal(format!("the properties of `{request}` cannot be read: {error}"), false)
        })?;
        ledger::arm();
        let own = device::space(&device);
        let on_device = canary::on_device(&device).map_err(|error| {
            let others = observe::other_processes(own);
            let why = format!("no block can be allocated on `{request}`: {error}{others}");
            device_refusal(why, false)
        })?;
        let mut canaries = vec![(Space::Host, canary::on_host()), (own, on_device)];
        if judged::may_be_host(own) || limits.max_host_growth.value.is_some() {
            ledger::count_small();
            canaries.push((Space::HostSmall, canary::on_host_small()));
        }
        if limits.max_c_growth.value.is_some() {
            c_heap::start();
            canaries.push((Space::CHeap, canary::on_c_heap()));
        }
        #[cfg(feature = "cuda")]
        {
            let refusal =
                |step: &str, error| device_refusal(format!("{step} `{request}`: {error}"), false);
            device::check_free(&device)
                .map_err(|error| refusal("the first free failed on", error))?;
            probe::pool::reset_peak(&device).map_err(|error| {
                refusal("the peak of the memory pool cannot be reset on", error)
            })?;
        }
        let scopes = if job.own_subscriber { scope::Install::Never } else { scope::Install::Now };
        let attribute = |modules| attribution::start(scopes, modules).map(Some);
        let attributor = match job.follow {
            Follow::No => None,
            Follow::Yes => attribute(None)?,
            Follow::Modules => attribute(Some(own))?,
        };
        last_state::follow_signals();
        // Last, so that canaries and the start of attribution are in no figure.
        ledger::reset();
        Ok(Self { device, own, pool, canaries, counters, unified, attributor })
    }

    pub(super) fn device(&self) -> Device {
        self.device.clone()
    }

    /// The space of the test's own device.
    pub(super) fn own(&self) -> Space {
        self.own
    }

    /// The record that `assemble` makes of a trial, completed with the armed probes and the figures
    /// of other counters. The second value is the attribution, if the run has one.
    fn record(
        self,
        trial: Trial,
        limits: &Limits,
        assemble: impl FnOnce(&mut Recorder, &[Space]) -> Record,
        job: &Job,
    ) -> (Record, Option<Unresolved>) {
        let patience = trial.patience();
        let (mut recorder, others) = trial.into_parts();
        let own = judged::own(self.own);
        let mut judged = judged::spaces(self.own, limits);
        judged.extend(recorder.counters());
        // First, because everything below reads live blocks.
        let note = rounds::wait_for_frees(&judged, limits, patience);
        let live = self.attributor.as_ref().map(|_| attribution::live_blocks());
        let mut record = assemble(&mut recorder, &judged);
        let with_blocks = record.spaces.iter_mut().filter(|(space, _)| space.has_blocks());
        for (space, measured) in with_blocks {
            let known = self.canaries.iter().chain(&others).find(|canary| canary.0 == *space);
            measured.armed = match known {
                Some(&(_, seen)) => seen,
                // The body was the first to use this space, so that its probe has not been tested
                // yet.
                None => judged.contains(space) && canary::in_space(*space).unwrap_or(false),
            };
        }
        record.notes.extend(note);
        record.notes.extend(judged::note(self.own, &record));
        record.notes.extend(self.pool.note(&judged, limits));
        record.unified = self.unified.and_then(|card| {
            let capacity = *record.capacities.get(&self.own)?;
            Some(Unified { space: self.own, card, capacity, peak_allocated: ledger::sum().peak })
        });
        self.counters.observe(&self.device, own, &mut record);
        let Some(attributor) = self.attributor else { return (record, None) };
        let live = live.unwrap_or_default();
        let attribution = attributor.finish((recorder.iterations(), live), &judged, job.sources());
        if job.own_subscriber && scope::all().is_empty() {
            record.notes.push(restart::NO_SCOPES.to_owned());
        }
        if attribution.is_none() {
            record.notes.push(
                "call sites are missing, because the thread that collects them panicked".to_owned(),
            );
        }
        (record, attribution)
    }
}

/// Starts to add up the memory of host and device if they share it, and returns the name of the
/// card then.
fn unified(device: &Device) -> device::Result<Option<String>> {
    #[cfg(feature = "cuda")]
    if probe::card::shares_host_memory(device)? {
        ledger::count_sum();
        return Ok(probe::card::card(device)?.map(|card| card.name));
    }
    let _ = device;
    Ok(None)
}

/// The record of a process that measures no figures.
pub(super) fn empty_record(
    description: &Description,
    (job, request): (&Job, &Request),
    case: Case,
    own: Space,
) -> Record {
    let limits = job.limits.clone();
    let mut recorder = Recorder::new(own, job.reach, &limits);
    let ended = (case, Outcome::Returned);
    assemble(description, (job, request), limits, ended, &mut recorder, &[own])
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
    let mut remarks = Vec::new();
    if limits.iterations.value == 1 {
        remarks.push("one iteration cannot show growth: at least two are needed".to_owned());
    }
    if outcome == Outcome::Returned && !recorder.has_started() {
        remarks.push(
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
            arch: (family == Family::Cpu).then(Facts::arch_of_host).flatten(),
            features: job.features.clone(),
        },
        limits,
        phase_limits: description.max_peaks(),
        iterated: recorder.has_started(),
        iterations: recorder.measured(),
        followed: recorder.followed(),
        can_go_on: recorder.can_go_on(),
        soaked: recorder.soaked(),
        spaces: recorder.finish(judged),
        process: recorder.take_process(),
        unified: None,
        capacities: open::capacities(request),
        lost_events: ledger::lost_events(),
        events_of_unknown_gpus: ledger::events_of_unknown_gpus(),
        unsupported_calls: unsupported_calls(),
        failed_assert: failed_assert(),
        notes: Vec::new(),
        remarks,
        driver: Default::default(),
        values: None,
        fault_sweep: None,
        marks: recorder.take_marks(),
        attribution: None,
        longer: None,
        repeats: None,
        ended_at: None,
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

#[cfg(feature = "sim")]
pub(super) fn failed_assert() -> Option<String> {
    memcheck_sim::failed_assert().map(|failed| failed.to_string())
}

#[cfg(not(feature = "sim"))]
pub(super) fn failed_assert() -> Option<String> {
    None
}

/// Makes the refusal for an error of a device. The device itself is at fault if this is `certain`,
/// or if the text of the error names such a fault.
fn device_refusal(why: String, certain: bool) -> Refusal {
    let device = certain || fault::of(&why).is_some();
    let hint = (!device).then(|| match std::env::var(SIM_FAULTS.name) {
        Ok(faults) if cfg!(feature = "sim") && !faults.is_empty() => format!(
            "`{}={faults}` causes this: before each body memcheck opens the device, and allocates \
             and frees a block to test the probe",
            SIM_FAULTS.name
        ),
        _ if verdict::says_out_of_memory(&why) => {
            "end the processes that hold its memory, wait for them, or use another device"
                .to_owned()
        }
        _ => "check the GPU with `nvidia-smi`, `dmesg | grep Xid` and `cargo memcheck doctor`, or \
              use `--device sim`, which needs no GPU"
            .to_owned(),
    });
    Refusal { why, device, hint }
}
