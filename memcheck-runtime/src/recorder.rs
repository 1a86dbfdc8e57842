//! Turns the figures of the ledger into a record: the series over the iterations, and the metrics
//! computed from them.

mod phases;

use std::collections::BTreeMap;

use memcheck_core::growth::survivors::{self, Grown};
use memcheck_core::limits::Limits;
use memcheck_core::measurement::process_memory::{ProcessMemory, Resident};
use memcheck_core::measurement::record::{Followed, Mark, Metrics, RefusedAllocation, SpaceRecord};
use memcheck_core::measurement::soak::Soaked;
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::{Reach, SoakTime};
use memcheck_ledger::{self as ledger, CounterSnapshot, block, site};

use crate::at_end::LiveAtEnd;
use crate::attribution::Iterations;
use crate::following::Following;
use crate::process_memory::Process;

use self::phases::Phases;

/// The data that is collected while a body runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    has_started: bool,
    /// The birth of the blocks before the first iteration.
    births_from: u32,
    warmup: usize,
    /// The last measured iteration.
    last: usize,
    following: Following,
    /// The growth of each judged space, set when the iterations have ended.
    grown: BTreeMap<Space, Grown>,
    setup: BTreeMap<Space, u64>,
    before: BTreeMap<Space, CounterSnapshot>,
    /// The number of measured iterations that have completed.
    measured: usize,
    /// The figures of those iterations, by space. Iterations before the first use of a space are
    /// missing.
    iterations: BTreeMap<Space, Vec<Iteration>>,
    marks: Vec<Mark>,
    phases: Phases,
    /// The bytes of each counter of the program: in the set-up, after each measured iteration, and
    /// at the end.
    counters: BTreeMap<Space, CounterSeries>,
    at_end: LiveAtEnd,
    process: Process,
    /// The figures of other counters on the test's own device after each measured iteration: the
    /// driver's pool, or NVML if the device has no pool.
    reserved: Vec<u64>,
    device_used: Vec<u64>,
    own: Option<Space>,
}

#[derive(Debug, Clone, Copy)]
struct Iteration {
    live: u64,
    peak: u64,
    allocations: u64,
    allocated_total: u64,
}

#[derive(Debug, Default)]
struct CounterSeries {
    setup: u64,
    measured: Vec<u64>,
    at_end: u64,
}

/// The birth of blocks in iteration `index`; 0 is the set-up.
fn birth(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// The host, and all other spaces that have any figure.
fn active_spaces() -> impl Iterator<Item = (Space, CounterSnapshot)> {
    block::spaces()
        .map(|space| (space, ledger::snapshot(space)))
        .filter(|(space, now)| *space == Space::Host || *now != CounterSnapshot::default())
}

impl Recorder {
    /// A recorder for a test on a device whose memory is `own`.
    pub(crate) fn new(own: Space, reach: Reach, limits: &Limits) -> Self {
        let (warmup, iterations) = (limits.warmup.value as usize, limits.iterations.value as usize);
        Self {
            has_started: false,
            births_from: 0,
            warmup,
            last: (warmup + iterations).saturating_sub(1),
            following: Following::new(own, reach, limits),
            grown: BTreeMap::new(),
            setup: BTreeMap::new(),
            before: BTreeMap::new(),
            measured: 0,
            iterations: BTreeMap::new(),
            marks: Vec::new(),
            phases: Phases::default(),
            counters: BTreeMap::new(),
            at_end: LiveAtEnd::default(),
            process: Process::begin(),
            reserved: Vec::new(),
            device_used: Vec::new(),
            own: None,
        }
    }

    /// The same recorder for a further round of the body, whose blocks have later births than all
    /// blocks before.
    pub(crate) fn with_births_from(self, births_from: u32) -> Self {
        Self { births_from, ..self }
    }

    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Begins the iterations. Returns `false` if they have begun before.
    pub(crate) fn start(&mut self, counters: &[(Space, u64)]) -> bool {
        if self.has_started {
            return false;
        }
        self.has_started = true;
        self.setup = active_spaces().map(|(space, now)| (space, now.live)).collect();
        for &(space, bytes) in counters {
            self.counters.entry(space).or_default().setup = bytes;
        }
        self.following.start();
        true
    }

    pub(crate) fn begin_iteration(&mut self, index: usize) {
        self.before = active_spaces().collect();
        if index == self.warmup {
            self.phases.begin_measured();
        }
        ledger::begin_iteration(self.births_from.saturating_add(birth(index)));
    }

    pub(crate) fn end_iteration(&mut self, index: usize, counters: &[(Space, u64)]) {
        ledger::end_iteration();
        self.following.take_census();
        self.following.add_counters(counters);
        let is_measured = (self.warmup..=self.last).contains(&index);
        if index == self.last {
            self.phases.end_measured();
        }
        if is_measured || self.following.judges_resident() {
            let resident = self.process.read();
            self.following.add_resident(resident.map(Resident::taken));
            self.process.end_iteration(resident.filter(|_| is_measured));
        }
        if !is_measured {
            return;
        }
        for &(space, bytes) in counters {
            let series = &mut self.counters.entry(space).or_default().measured;
            series.resize(self.measured, 0);
            series.push(bytes);
        }
        self.measured += 1;
        for (space, now) in active_spaces() {
            let before = self.before.get(&space).copied().unwrap_or_default();
            let iteration = Iteration {
                live: now.live,
                peak: now.iteration_peak,
                allocations: now.allocations - before.allocations,
                allocated_total: now.allocated_total - before.allocated_total,
            };
            self.iterations.entry(space).or_default().push(iteration);
        }
    }

    /// The number of further iterations that are needed to decide the growth; 0 if the evidence is
    /// sufficient or no more iterations are allowed.
    pub(crate) fn further_iterations(&mut self) -> u32 {
        let further = self.following.further_iterations();
        self.phases.pause(further > 0);
        further
    }

    /// True if the body is in an iteration beyond the measured ones. It may not be written for so many,
    /// so that an error is none of the test.
    pub(crate) fn is_extended(&self) -> bool {
        self.following.is_extended()
    }

    /// Ends the iterations beyond the measured ones, because the body returned this error.
    pub(crate) fn handle_failure(&mut self, error: &str) {
        self.following.handle_failure(error);
    }

    /// Ends the iterations.
    pub(crate) fn end_iterations(&mut self) {
        self.grown = self.following.growth();
        self.phases.pause(false);
        self.process.end_iterations();
        if site::is_on() {
            let first = birth(self.warmup);
            self.at_end = LiveAtEnd::capture(&(first..first.saturating_add(self.measured())));
        }
    }

    pub(crate) fn soaked(&self) -> Option<Soaked> {
        self.following.soaked()
    }

    /// The time of a soak; `None` if the test is not soaked.
    pub(crate) fn soak_time(&self) -> Option<SoakTime> {
        self.following.soak_time()
    }

    pub(crate) fn followed(&self) -> Option<Followed> {
        self.following.followed()
    }

    pub(crate) fn can_go_on(&self) -> bool {
        self.following.can_go_on()
    }

    /// Adds the figure of the driver's pool, or of NVML, after iteration `index`.
    #[cfg(feature = "cuda")]
    pub(crate) fn observe_driver(&mut self, index: usize, device: &crate::device::Device) {
        use crate::probe::{nvml, pool};
        let own = crate::device::space(device);
        if !own.is_device() || index < self.warmup || index > self.last {
            return;
        }
        self.own = Some(own);
        match pool::read(device) {
            Ok(Some(pool)) => self.reserved.push(pool.reserved),
            Ok(None) => self.device_used.extend(nvml::device_used(own)),
            Err(_) => {}
        }
    }

    pub(crate) fn mark(&mut self, label: &str) {
        if self.following.is_extending() {
            return;
        }
        self.marks.push(Mark {
            label: label.to_owned(),
            allocated: active_spaces().map(|(space, now)| (space, now.live)).collect(),
            peak_allocated: active_spaces().map(|(space, now)| (space, now.peak)).collect(),
            process: self.process.read(),
        });
    }

    /// Begins a phase, and returns its place in the order; `None` if it is not measured.
    pub(crate) fn begin_phase(&mut self, name: &str) -> Option<u64> {
        self.phases.begin(name)
    }

    pub(crate) fn end_phase(&mut self, begun: u64) {
        self.phases.end(begun);
    }

    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    pub(crate) fn iterations(&self) -> Iterations<'_> {
        Iterations {
            grown: &self.grown,
            first: birth(self.warmup),
            ended: self.following.iterations(),
            at_end: &self.at_end,
        }
    }

    /// The number of measured iterations that have completed.
    pub(crate) fn measured(&self) -> u32 {
        u32::try_from(self.measured).unwrap_or(u32::MAX)
    }

    /// The memory of the process. Must be called after [`Recorder::finish`].
    pub(crate) fn take_process(&mut self) -> Option<ProcessMemory> {
        self.process.finish()
    }

    /// The records of all active and all judged spaces. Must be called after the body has returned
    /// and its values are dropped.
    pub(crate) fn finish(&mut self, judged: &[Space]) -> BTreeMap<Space, SpaceRecord> {
        if self.has_started && self.grown.is_empty() {
            // A panic has ended the iterations.
            self.grown = self.following.growth();
        }
        let mut spaces: Vec<Space> = active_spaces().map(|(space, _)| space).collect();
        spaces.extend(judged);
        spaces.sort();
        spaces.dedup();
        spaces.into_iter().map(|space| (space, self.space_record(space))).collect()
    }

    /// Adds the bytes of the counters after the body has returned.
    pub(crate) fn end_counters(&mut self, counters: &[(Space, u64)]) {
        for &(space, bytes) in counters {
            self.counters.entry(space).or_default().at_end = bytes;
        }
    }

    /// The spaces of the counters.
    pub(crate) fn counters(&self) -> impl Iterator<Item = Space> {
        self.counters.keys().copied()
    }

    /// The record of a counter. Its bytes are known only when they are read.
    fn counter_record(&self, space: Space) -> SpaceRecord {
        let Some(CounterSeries { setup, measured, at_end }) = self.counters.get(&space) else {
            return SpaceRecord::default();
        };
        let grown = self.grown.get(&space).cloned().unwrap_or_default();
        SpaceRecord {
            metrics: Metrics {
                allocated: measured.last().copied().unwrap_or(*at_end),
                peak_allocated: measured.iter().chain([setup, at_end]).copied().max().unwrap_or(0),
                setup: *setup,
                growth: grown.bytes_per_iteration,
                retained: *at_end,
                ..Metrics::default()
            },
            peak: measured.clone(),
            slope: survivors::theil_sen(measured).unwrap_or(0.0),
            armed: true,
            allocated: measured.clone(),
            growth: grown.growth,
            ..SpaceRecord::default()
        }
    }

    /// The record of the resident memory, for a test that limits its growth.
    fn resident_record(&self) -> SpaceRecord {
        let memory = self.process.memory();
        let allocated: Vec<u64> = memory.iterations.iter().map(|it| it.taken()).collect();
        let grown = self.grown.get(&Space::Process).cloned().unwrap_or_default();
        SpaceRecord {
            metrics: Metrics {
                allocated: memory.at_end.taken(),
                peak_allocated: memory.peak.taken(),
                growth: grown.bytes_per_iteration,
                ..Metrics::default()
            },
            peak: allocated.clone(),
            slope: survivors::theil_sen(&allocated).unwrap_or(0.0),
            // The peak is above zero only if the system has reported the memory.
            armed: memory.peak.rss_anon > 0,
            allocated,
            growth: grown.growth,
            ..SpaceRecord::default()
        }
    }

    fn space_record(&self, space: Space) -> SpaceRecord {
        match space {
            Space::Process => return self.resident_record(),
            Space::Counter(_) => return self.counter_record(space),
            _ => {}
        }
        let now = ledger::snapshot(space);
        let series = |pick: fn(&Iteration) -> u64| -> Vec<u64> {
            let known = self.iterations.get(&space).map_or(&[][..], Vec::as_slice);
            let missing = self.measured.saturating_sub(known.len());
            std::iter::repeat_n(0, missing).chain(known.iter().map(pick)).collect()
        };
        let allocated = series(|iteration| iteration.live);
        let grown = self.grown.get(&space).cloned().unwrap_or_default();
        let metrics = Metrics {
            allocated: allocated.last().copied().unwrap_or(now.live),
            peak_allocated: now.whole_peak,
            setup: self.setup.get(&space).copied().unwrap_or(0),
            growth: grown.bytes_per_iteration,
            retained: now.live,
            allocations: median(series(|iteration| iteration.allocations)),
            allocated_total: median(series(|iteration| iteration.allocated_total)),
            reserved: None,
            peak_reserved: None,
            device_used: None,
        };
        SpaceRecord {
            metrics,
            peak: series(|iteration| iteration.peak),
            measured_peak: self.following.measured_peak(space),
            allocations: series(|iteration| iteration.allocations),
            allocated_total: series(|iteration| iteration.allocated_total),
            slope: survivors::theil_sen(&allocated).unwrap_or(0.0),
            allocated,
            retained_again: None,
            rounds: None,
            kept: self.following.kept(space),
            growth: grown.growth,
            survivors: grown.by_size,
            reserved: if self.own == Some(space) { self.reserved.clone() } else { Vec::new() },
            device_used: if self.own == Some(space) {
                self.device_used.clone()
            } else {
                Vec::new()
            },
            failed_frees: now.failed_frees,
            refused: (now.refused_bytes > 0).then_some(RefusedAllocation {
                requested: now.refused_bytes,
                live: now.refused_live,
                host: ledger::sum().refused_live.saturating_sub(now.refused_live),
                last: now.refused_after == now.allocations,
            }),
            phases: self.phases.figures(space, self.measured),
            armed: false,
        }
    }
}

/// The lower median, which is an integer that occurs in the series.
fn median(mut series: Vec<u64>) -> u64 {
    series.sort_unstable();
    match series.len() {
        0 => 0,
        length => series[(length - 1) / 2],
    }
}
