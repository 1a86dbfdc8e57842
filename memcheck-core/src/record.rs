//! What one run of one test measured: the wire between test process and command.
//!
//! serde types, and a note where two of them disagree. A record is written
//! whole, by renaming, at the end of the test process; a test passes on nothing
//! less than a complete record of its own name and version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attribution::{Attribution, Unresolved};
use crate::device::Family;
use crate::driver::Driver;
use crate::limits::Limits;
use crate::repeats::Repeats;
use crate::size::both;
use crate::space::Space;
use crate::stack::Frame;
use crate::survivors::{Group, Growth};

/// Version of [`Record`] and of everything in it.
pub const VERSION: u32 = 1;

/// The figures of one space, in bytes and counts, relative to the moment at
/// which the test body started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Live bytes at the end of the last measured iteration, as requested by
    /// the program.
    pub allocated: u64,
    /// Highest number of live bytes between the start of the body and its return.
    pub peak_allocated: u64,
    /// Live bytes when the first iteration started.
    pub setup: u64,
    /// Bytes an iteration, over the measured iterations.
    pub growth: u64,
    /// Live bytes after the body returned.
    pub retained: u64,
    /// Allocations in one measured iteration (median).
    pub allocations: u64,
    /// Bytes allocated in one measured iteration (median).
    pub allocated_total: u64,
    /// Bytes that the driver's pool holds; `None` where there is no pool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reserved: Option<u64>,
    /// Highest number of bytes that the driver's pool held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub peak_reserved: Option<u64>,
    /// What NVML says that the process holds; `None` where NVML does not answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device_used: Option<u64>,
}

/// One space over the measured iterations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceRecord {
    /// The figures.
    pub metrics: Metrics,
    /// Live bytes at the end of each measured iteration.
    pub allocated: Vec<u64>,
    /// Allocations in each measured iteration.
    #[serde(default)]
    pub allocations: Vec<u64>,
    /// Highest number of live bytes within each measured iteration.
    pub peak: Vec<u64>,
    /// Theil–Sen slope of `allocated`, in bytes an iteration: what a straight
    /// line says, beside the exact `growth`. Reported, never judged.
    #[serde(default)]
    pub slope: f64,
    /// Bytes that a second round of the body, set-up included, left beside those of the
    /// first; `None` if there was no second round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_again: Option<u64>,
    /// What is known of the growth.
    #[serde(default)]
    pub growth: Growth,
    /// Survivors of the measured iterations by block size. In a run that knows call
    /// sites, those that no site accounts for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<Group>,
    /// Bytes that the driver's pool holds after each measured iteration; empty
    /// where there is no pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<u64>,
    /// What NVML says that the process holds after each measured iteration;
    /// empty where NVML does not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_used: Vec<u64>,
    /// Frees that the driver refused: their blocks are live.
    #[serde(default)]
    pub failed_frees: u64,
    /// The last allocation that the device had no memory for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<Refusal>,
    /// Whether the canary of this run was seen when allocated and when freed.
    pub armed: bool,
}

/// An allocation that failed for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Bytes asked for.
    pub requested: u64,
    /// Live bytes at that moment.
    pub live: u64,
    /// Whether nothing was allocated in its space after it.
    #[serde(default)]
    pub last: bool,
}

/// How far a test was followed beyond its measured iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// Iterations without those of the warm-up.
    pub iterations: u32,
    /// Seconds that the iterations beyond the measured ones took.
    pub seconds: f64,
    /// True if further iterations would not change the verdict.
    pub decided: bool,
    /// True if the iterations beyond the measured ones changed what is live, so that the
    /// figures of what the body does after them are not those of a run without them.
    #[serde(default)]
    pub disturbed: bool,
    /// Why they came to their end early: an error of the body, or lack of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// How the test body ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// It returned, with `Ok` where it returns a `Result`.
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

/// Facts that make figures incomparable when they differ. They stand in the
/// header of a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Version of the baseline's format.
    pub memcheck: u32,
    /// Version of candle-core, from the binary's own dependency.
    pub candle: String,
    /// Build profile: `debug` or `release`, by debug assertions.
    pub profile: String,
    /// Measured iterations.
    pub iterations: u32,
    /// Iterations before them.
    pub warmup: u32,
    /// Threads of the rayon pool; only where the host is judged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threads: Option<u32>,
    /// The value of the case named `dtype`; only where the test has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dtype: Option<String>,
}

/// A labelled line of usage, from `trial.mark(label)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The label.
    pub label: String,
    /// Live bytes by space.
    pub allocated: BTreeMap<Space, u64>,
    /// Highest number of live bytes by space, so far.
    pub peak_allocated: BTreeMap<Space, u64>,
}

/// The record of one run of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`] of whoever wrote it.
    pub version: u32,
    /// The cargo package.
    pub package: String,
    /// The path of the test in its binary.
    pub test: String,
    /// The values of its case, by name; empty where the test has no cases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case: BTreeMap<String, String>,
    /// What it ran on, as asked for: `cpu`, `sim:h200`, `cuda:0`.
    pub device: String,
    /// The family of that device.
    pub family: Family,
    /// The spaces that are judged; the others are reported.
    pub judged: Vec<Space>,
    /// How the body ended.
    pub outcome: Outcome,
    /// The text that a panic is expected to hold, empty for any panic; `None`
    /// where none is expected.
    #[serde(default)]
    pub should_panic: Option<String>,
    /// Facts for the baseline's header.
    pub facts: Facts,
    /// The limits in force, each with its source.
    pub limits: Limits,
    /// Whether the body called `Trial::iterate`.
    pub iterated: bool,
    /// Measured iterations that ran to their end.
    pub iterations: u32,
    /// How far the test was followed; `None` if no further than its iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Followed>,
    /// The figures by space.
    pub spaces: BTreeMap<Space, SpaceRecord>,
    /// What each device holds, in bytes, whatever `fits` says: as its driver says,
    /// or that of the simulated card or of `capacity=`. Empty on the host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<Space, u64>,
    /// Events that the ledger could not take. Not zero: nothing is proven.
    pub lost_events: u64,
    /// Calls that the simulated device does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported_calls: Vec<String>,
    /// What is not available here, and why (NVML in a container, say).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the driver, NVML and CUPTI say beside the program's own calls.
    #[serde(default)]
    pub driver: Driver,
    /// Labelled lines of usage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Who holds the bytes; `None` in a run that only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// The call sites of the run that decided the growth, if that was another one. Its
    /// peaks and what it retained are those of more iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer: Option<Attribution>,
    /// The figures of all runs of the test, if two of them differed or if `--repeat`
    /// asked for several. A test process leaves it empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

impl Record {
    /// True if further iterations may decide the growth of a judged space.
    pub fn is_undecided(&self) -> bool {
        let mut judged = self.judged.iter().filter_map(|space| self.spaces.get(space));
        self.iterated && judged.any(|measured| measured.growth == Growth::Unknown)
    }

    /// Takes over the growth of another run of the same test, with its call sites.
    pub fn take_growth(&mut self, other: Self) {
        for (space, measured) in &mut self.spaces {
            if let Some(longer) = other.spaces.get(space) {
                measured.metrics.growth = longer.metrics.growth;
                measured.growth = longer.growth;
                measured.survivors.clone_from(&longer.survivors);
            }
        }
        self.followed = other.followed;
        self.longer = other.longer.or(other.attribution);
    }

    /// Adds an attribution, once its call stacks can be looked up.
    pub fn attribute(&mut self, unresolved: Unresolved, lookup: impl FnMut(u64) -> Vec<Frame>) {
        self.attribution = Some(unresolved.resolve(lookup));
        self.note_peaks();
    }

    /// True if a space holds memory that the body allocated once in its process.
    pub fn holds_once(&self) -> bool {
        let mut judged = self.judged.iter().filter_map(|space| self.spaces.get(space));
        let limit = self.limits.max_retained.value;
        judged.any(|measured| measured.retained_again.is_some_and(|again| again <= limit))
    }

    /// Notes the judged spaces whose holders add up to another peak than the
    /// counters saw: then the order of events is not the one they happened in.
    fn note_peaks(&mut self) {
        let Some(attribution) = &self.attribution else { return };
        for space in &self.judged {
            let counted = self.spaces.get(space).map(|measured| measured.metrics.peak_allocated);
            let followed = attribution.peaks.get(space).map(|peak| peak.bytes);
            if let (Some(counted), Some(followed)) = (counted, followed)
                && counted != followed
            {
                self.notes.push(format!(
                    "the holders in {space} are those of a peak of {}, and peak_allocated is {}: \
                     several threads allocated at the same time, or the peak was reset",
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
    use crate::attribution::Peak;
    use crate::verdict::tests::{GPU, armed, record};

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
        assert!(record.notes[0].contains("4,096 B (4.0 KiB)"), "{:?}", record.notes);
    }
}
