//! The record of one run of one test, renamed into place at its end, so that the command never sees
//! a partial one. A test passes only with a complete record of its own name and version.

#[cfg(test)]
pub(crate) mod example;
mod limited;
mod sentences;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::Family;
use crate::growth::survivors::{Group, Growth};
use crate::limits::Limits;
use crate::measurement::attribution::{Attribution, Unresolved};
use crate::measurement::driver::Driver;
use crate::measurement::fault_sweep::SweepResult;
use crate::measurement::phase::PhaseFigures;
use crate::measurement::process_memory::{MappedFile, ProcessMemory, Resident};
use crate::measurement::repeats::Repeats;
use crate::measurement::soak::Soaked;
use crate::measurement::stack::Frame;
use crate::measurement::unified::Unified;
use crate::measurement::unknown_reads::UnknownReads;
use crate::size::both;
use crate::space::Space;
pub use limited::{growth_limit, kept_limit};

/// Version of [`Record`] and of the types in it. The reader must have the same.
pub const VERSION: u32 = 1;

/// The figures of one space, in bytes and counts, relative to the start of the test body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Live bytes at the end of the last measured iteration, in requested sizes.
    pub allocated: u64,
    /// Highest number of live bytes between the start and the return of the body.
    pub peak_allocated: u64,
    /// Live bytes when the first iteration started.
    pub setup: u64,
    /// Bytes per iteration, over the measured iterations.
    pub growth: u64,
    /// Live bytes after the body returned.
    pub retained: u64,
    /// Allocations in one measured iteration (median).
    pub allocations: u64,
    /// Bytes allocated in one measured iteration (median).
    pub allocated_total: u64,
    /// Bytes that the driver's pool holds; `None` for a space without a pool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reserved: Option<u64>,
    /// Highest number of bytes that the driver's pool held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub peak_reserved: Option<u64>,
    /// Bytes that the process holds according to NVML; `None` if NVML does not answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device_used: Option<u64>,
}

/// The figures and series of one space.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceRecord {
    /// The figures.
    pub metrics: Metrics,
    /// Live bytes at the end of each measured iteration.
    pub allocated: Vec<u64>,
    /// Allocations in each measured iteration.
    #[serde(default)]
    pub allocations: Vec<u64>,
    /// Bytes allocated in each measured iteration, freed or not.
    #[serde(default)]
    pub allocated_total: Vec<u64>,
    /// Highest number of live bytes within each measured iteration.
    pub peak: Vec<u64>,
    /// Highest number of live bytes in set-up and measured iterations; `None` if no iterations
    /// followed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_peak: Option<u64>,
    /// Theil–Sen slope of `allocated` in bytes per iteration; reported and never judged.
    #[serde(default)]
    pub slope: f64,
    /// Bytes that the last further round, set-up included, left in addition; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_again: Option<u64>,
    /// The number of these further rounds, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The most bytes that blocks of the iterations held after one of them, further iterations
    /// included; `None` if the test does not limit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// The state of the decision about growth.
    #[serde(default)]
    pub growth: Growth,
    /// Survivors by block size; with call sites, only those that no call site accounts for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<Group>,
    /// Bytes of the driver's pool after each measured iteration; empty without a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<u64>,
    /// Bytes according to NVML after each measured iteration; empty if NVML does not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_used: Vec<u64>,
    /// Frees that the driver refused. Their blocks are live.
    #[serde(default)]
    pub failed_frees: u64,
    /// The last allocation that the device refused for lack of memory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<RefusedAllocation>,
    /// The figures of each phase of the body, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<String, PhaseFigures>,
    /// True if the probe saw both the allocation and the free of this run's canary.
    pub armed: bool,
}

impl SpaceRecord {
    /// True if no block was live in the set-up and the measured iterations.
    pub(crate) fn is_unused(&self) -> bool {
        self.metrics.setup == 0 && self.peak.iter().all(|&peak| peak == 0)
    }
}

/// An allocation that failed for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedAllocation {
    /// Bytes requested.
    pub requested: u64,
    /// Live bytes at that moment.
    pub live: u64,
    /// Live bytes of all other spaces at that moment, if host and device share one memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host: u64,
    /// True if no allocation followed it in its space.
    #[serde(default)]
    pub last: bool,
}

/// The iterations of a test beyond its measured ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// All iterations except the warm-up.
    pub iterations: u32,
    /// Duration of the iterations beyond the measured ones, in seconds.
    pub seconds: f64,
    /// True if further iterations would not change the verdict.
    pub decided: bool,
    /// True if they changed the live memory, so that later figures are not those without them.
    #[serde(default)]
    pub disturbed: bool,
    /// The reason why they ended early: an error of the body, or lack of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// How the test body ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// It returned; with `Ok` if it returns a `Result`.
    Returned,
    /// It returned an error; the text is its `Debug`.
    Failed {
        /// The error.
        error: String,
    },
    /// It panicked.
    Panicked {
        /// The panic message.
        message: String,
    },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The conditions of a run. Figures of runs with different conditions are not comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Version of the baseline's format.
    pub memcheck: u32,
    /// Version of candle-core, from the binary's own dependency.
    pub candle: String,
    /// Build profile, `debug` or `release`, derived from debug assertions.
    pub profile: String,
    /// Measured iterations.
    pub iterations: u32,
    /// Warm-up iterations.
    pub warmup: u32,
    /// Threads of the rayon pool; only if the host is judged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threads: Option<u32>,
    /// The value of the case named `dtype`; only if the test has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dtype: Option<String>,
    /// Processor architecture; only if the host is judged and is not x86-64, so that headers from
    /// before this field are those of x86-64.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arch: Option<String>,
    /// The features of the package that the command has switched on for this kind of device,
    /// separated by commas; only if there are any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub features: Option<String>,
}

impl Facts {
    /// The processor architecture of headers that do not name one.
    pub const USUAL_ARCH: &str = "x86_64";

    /// The architecture of this process, as a header of the host names it.
    pub fn arch_of_host() -> Option<String> {
        let arch = std::env::consts::ARCH;
        (arch != Self::USUAL_ARCH).then(|| arch.to_owned())
    }
}

/// The memory usage at one point of the body, from `trial.mark(label)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The label.
    pub label: String,
    /// Live bytes by space.
    pub allocated: BTreeMap<Space, u64>,
    /// Highest number of live bytes by space up to this point.
    pub peak_allocated: BTreeMap<Space, u64>,
    /// The memory of the process; `None` if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Resident>,
}

/// The record of one run of one test, valid in the sense of [`crate::measurement::validity`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Record {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The cargo package.
    pub package: String,
    /// The path of the test in its binary.
    pub test: String,
    /// The values of its case, by name; empty if the test has no cases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case: BTreeMap<String, String>,
    /// The requested device: `cpu`, `sim:h200`, `cuda:0`.
    pub device: String,
    /// The family of that device.
    pub family: Family,
    /// The spaces that are judged; other spaces are only reported.
    pub judged: Vec<Space>,
    /// How the body ended.
    pub outcome: Outcome,
    /// The moment at which the body panicked or returned an error, such as `in iteration 5 of 12`.
    /// The parent of the test process adds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The text that a panic must contain; empty for any panic. `None` if the body must not panic.
    #[serde(default)]
    pub should_panic: Option<String>,
    /// The conditions of the run, for the baseline's header.
    pub facts: Facts,
    /// The limits in force, each with its source.
    pub limits: Limits,
    /// The most bytes that may be live in a phase of the body, by the name of the phase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phase_limits: BTreeMap<String, u64>,
    /// True if the body called `Trial::iterate`.
    pub iterated: bool,
    /// Measured iterations that were completed.
    pub iterations: u32,
    /// The iterations beyond the measured ones; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Followed>,
    /// True if the run had no iterations beyond the measured ones, although there was time for those
    /// that show late leaks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_go_on: bool,
    /// The soak of the test, measured in another process; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soaked: Option<Soaked>,
    /// The figures by space.
    pub spaces: BTreeMap<Space, SpaceRecord>,
    /// The capacity of each device in bytes, regardless of `fits`; empty on the host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<Space, u64>,
    /// Events that the ledger could not count. If this is not 0, the run is `not-measured`.
    pub lost_events: u64,
    /// The lost events of GPUs that have no counters, or whose number the driver did not return.
    /// The ledger had no room for the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_of_unknown_gpus: u64,
    /// Calls that the simulated device does not implement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported_calls: Vec<String>,
    /// The first assert of a kernel that failed on the simulated device, as a sentence such as `the
    /// kernel is_u32_f32 got the id 64, which is not in 0..64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_assert: Option<String>,
    /// Facts that a reader should know, such as a missing source of figures and the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Facts that explain the figures. Unlike the notes, none of them questions a pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The figures of the driver, NVML and CUPTI, in addition to the program's own calls.
    #[serde(default)]
    pub driver: Driver,
    /// The reads of unknown values of the simulated device; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<UnknownReads>,
    /// The refusals of the allocations of one iteration, measured in another process; `None`
    /// without a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_sweep: Option<SweepResult>,
    /// The memory of the process; `None` if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessMemory>,
    /// The one memory of host and device; `None` if each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unified: Option<Unified>,
    /// The points that `trial.mark` recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// The call sites that hold the bytes; `None` in a run that only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// The attribution of another run that decided the growth; its peaks are of more iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer: Option<Attribution>,
    /// The figures of all runs of the test, if several. A test process leaves it empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

impl Record {
    /// True if further iterations may decide the growth of a judged space.
    pub fn is_undecided(&self) -> bool {
        let mut judged = self.judged.iter().filter_map(|space| self.spaces.get(space));
        self.iterated && judged.any(|measured| measured.growth == Growth::Unknown)
    }

    /// Replaces the growth by that of another run of the same test, with its call sites. Unknown
    /// values that only the other run has read are those that its decision depends on.
    pub fn take_growth(&mut self, mut other: Self) {
        for (space, measured) in &mut self.spaces {
            if let Some(longer) = other.spaces.get_mut(space) {
                measured.metrics.growth = longer.metrics.growth;
                measured.survivors = std::mem::take(&mut longer.survivors);
            }
        }
        self.longer = other.longer.take().or(other.attribution.take());
        self.take_verdicts(other);
    }

    /// Replaces the verdicts on growth by those of another run of the same test that had more
    /// iterations. Adds the spaces that may grow and that only the other run has used, such as
    /// those of a GPU that is opened late.
    pub fn take_verdicts(&mut self, other: Self) {
        self.values = self.values.take().or(other.values);
        self.followed = other.followed;
        for (space, longer) in other.spaces {
            if let Some(measured) = self.spaces.get_mut(&space) {
                measured.growth = longer.growth;
                measured.kept = measured.kept.max(longer.kept);
            } else if !matches!(longer.growth, Growth::Quiet { .. })
                && other.judged.contains(&space)
            {
                // Its other figures are of iterations beyond the measured ones.
                let metrics = Metrics { growth: longer.metrics.growth, ..Metrics::default() };
                self.judged.push(space);
                self.spaces.insert(space, SpaceRecord { metrics, ..longer });
            }
        }
    }

    /// Adds an attribution, resolving its call stacks with `lookup`.
    pub fn attribute(&mut self, unresolved: Unresolved, lookup: impl FnMut(u64) -> Vec<Frame>) {
        self.attribution = Some(unresolved.resolve(lookup));
        self.note_peaks();
    }

    /// True if reads of unknown values, or refused allocations, have no lines yet.
    pub fn has_unnamed_lines(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.unresolved.is_some())
            || self.fault_sweep.as_ref().is_some_and(|sweep| sweep.sources.is_some())
    }

    /// The reason why the iterations of the test cannot be soaked; `None` if they can.
    pub fn refuses_soak(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::Failed { .. } | Outcome::Panicked { .. } => Some("the body did not return"),
            Outcome::Returned if !self.iterated => Some("the body does not iterate"),
            Outcome::Returned if self.limits.iterations.value < 2 => {
                Some("one iteration cannot show growth")
            }
            Outcome::Returned => None,
        }
    }

    /// False if growth was not measured, so that its figure says nothing: the body did not iterate
    /// twice, or did not return.
    pub fn measures_growth(&self) -> bool {
        let grew = || self.spaces.values().any(|measured| measured.metrics.growth > 0);
        self.refuses_soak().is_none() || grew()
    }

    /// Names those lines with `lookup`.
    pub fn name_lines(&mut self, mut lookup: impl FnMut(u64) -> Vec<Frame>) {
        if let Some(values) = &mut self.values {
            values.resolve(&mut lookup);
        }
        if let Some(sweep) = &mut self.fault_sweep {
            sweep.resolve(&mut lookup);
        }
    }

    /// True if a second round showed that judged memory is allocated once in the process.
    pub fn holds_once(&self) -> bool {
        self.judged.iter().any(|&space| self.added_by_second_round(space).is_some())
    }

    /// The bytes that a second round of the body left in a judged space in addition; `None` if they
    /// are above the limit, or there was no second round.
    pub fn added_by_second_round(&self, space: Space) -> Option<u64> {
        let is_judged = self.judged.contains(&space) && !self.has_own_limits(space);
        let added = self.spaces.get(&space).filter(|_| is_judged)?.retained_again?;
        (added <= self.limits.max_retained.value).then_some(added)
    }

    /// Holders that do not add up to the peak show that events were followed in another order.
    pub(crate) fn note_peaks(&mut self) {
        let Some(attribution) = &self.attribution else { return };
        for space in &self.judged {
            let counted = self.spaces.get(space).map(|measured| measured.metrics.peak_allocated);
            let followed = attribution.peaks.get(space).map(|peak| peak.bytes);
            if let (Some(counted), Some(followed)) = (counted, followed)
                && counted != followed
            {
                self.notes.push(format!(
                    "the call sites in {space} are those of a peak of {}, but `peak_allocated` is \
                     {}: several threads allocated at the same time, or the peak was reset",
                    both(followed),
                    both(counted)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::attribution::Peak;
    use crate::measurement::record::example::{GPU, armed, record};

    #[test]
    fn holders_of_another_peak_are_noted() {
        let mut record = record(armed(Metrics { peak_allocated: 4096, ..Metrics::default() }));
        record.note_peaks();
        for (followed, notes) in [(4096, 0), (5120, 1)] {
            let peak = Peak { bytes: followed, ..Peak::default() };
            let peaks = BTreeMap::from([(GPU, peak)]);
            record.attribution = Some(Attribution { peaks, ..Attribution::default() });
            record.note_peaks();
            assert_eq!(record.notes.len(), notes, "{:?}", record.notes);
        }
        assert!(record.notes[0].contains("4,096 B (4.00 KiB)"), "{:?}", record.notes);
    }
}
