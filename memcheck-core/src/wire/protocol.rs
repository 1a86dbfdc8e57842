//! The protocol between the command and a test binary: the listing, the job, its progress and its
//! measurement.
//!
//! - List: the binary gets `--list` and [`crate::request::variables::LIST`], and prints a
//!   [`Listing`] as JSON before its harness starts. Any other output is that of a binary without
//!   memory tests.
//! - Run: it gets `NAME --exact` and a [`Job`] in [`crate::request::variables::JOB`]. It writes a
//!   [`Measurement`] or, next to it, a [`Refusal`] to a file, and [`Progress`] as JSON lines to a pipe,
//!   or to a file if a launcher starts the process.
//! - Profile: a program gets a [`ProgramJob`] in [`crate::request::variables::PROGRAM`] and writes
//!   its [`Measurement`] when it exits. A bench gets one too, to prepare its device, and writes no
//!   report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::{Family, Need, Request};
use crate::limits::{Layer, Limits};
use crate::measurement::attribution::Unresolved;
use crate::measurement::record::Record;
use crate::measurement::stack::Sources;
use crate::shape::Scaling;
use crate::space::Space;

/// Version of this page. A binary of another version is asked to be rebuilt.
pub const VERSION: u32 = 5;

/// The memory tests of a binary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// [`VERSION`] of the binary.
    pub memcheck: u32,
    /// The devices that the binary was built for, in addition to the CPU: `sim`, `cuda`.
    pub built_for: Vec<String>,
    /// Its memory tests, sorted by name.
    pub tests: Vec<Entry>,
}

/// One memory test, as its attribute describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the binary: `llama::kv_cache`.
    pub name: String,
    /// Its module path, crate included: `mem::llama`.
    pub module: String,
    /// The values of its case, by name; empty if the test has no cases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case: BTreeMap<String, String>,
    /// The source file, with the path that the compiler was given.
    pub file: PathBuf,
    /// The line of the attribute.
    pub line: u32,
    /// True if the test has `#[ignore]`.
    pub ignored: bool,
    /// The devices that the test is for.
    pub need: Need,
    /// True if its body takes no device: it runs on the CPU, whatever the other tests run on.
    pub deviceless: bool,
    /// The limits of its attribute.
    pub attribute: Layer,
    /// The limits on how fast figures may grow over its cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// The folder of the package's Cargo.toml at compile time.
    pub manifest_dir: PathBuf,
    /// The file name of the snapshot, without suffix and extension: `mem__llama__kv_cache`.
    pub snapshot: String,
}

impl Entry {
    /// The family that the test runs on if the other tests run on `family`.
    pub fn family_on(&self, family: Family) -> Family {
        family_on(self.deviceless, self.need, family)
    }
}

/// A body that takes no device runs on the CPU, unless its attribute requires `cuda`, because its
/// memory is that of the host, which a test on a GPU does not judge.
pub fn family_on(deviceless: bool, need: Need, family: Family) -> Family {
    if deviceless && need != Need::Cuda { Family::Cpu } else { family }
}

/// The detail in which a test process follows blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Follow {
    /// It only counts.
    #[default]
    No,
    /// It follows every block with its call stack and scope.
    Yes,
    /// It follows every block, and also measures the bytes of each module of the model.
    Modules,
}

/// How far the iterations of a test go beyond the measured ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Only the measured iterations.
    #[default]
    Screen,
    /// Far enough for late or rare leaks, if the measured iterations leave nothing and are fast.
    Horizon,
    /// Until the growth is decided or the budget is used up.
    Decision,
    /// For this time, even if the growth is decided. The other figures are not judged.
    Soak(Duration),
    /// Through one iteration for each allocation that is refused. The figures are not judged.
    Faults,
}

/// The task of one test process, with all limits, so that it reads no configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// The test, by its path in the binary.
    pub test: String,
    /// The path of the file that the [`Measurement`] is written to.
    pub report: PathBuf,
    /// The file that receives JSON lines of [`Progress`], such as `/dev/fd/3`.
    pub progress: Option<PathBuf>,
    /// The device. It must not be `auto`, because the command resolves that first.
    pub device: Request,
    /// The limits in force, which the parent has resolved from all sources.
    pub limits: Limits,
    /// The workspace; paths of source files are shown relative to it.
    pub workspace: PathBuf,
    /// The workspace at compile time, if it was another folder. Line tables contain paths below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled_in: Option<PathBuf>,
    /// Version of candle-core in the build, for the baseline's header.
    pub candle: String,
    /// The features of the package that were switched on for this kind of device, for the
    /// baseline's header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// The detail in which blocks are followed.
    #[serde(default)]
    pub follow: Follow,
    /// How far the iterations go.
    #[serde(default)]
    pub reach: Reach,
    /// Values of its case that replace those of its attribute, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case: BTreeMap<String, String>,
    /// True if the progress has a view of the live memory.
    #[serde(default)]
    pub live: bool,
    /// True if the body installs a `tracing` subscriber, of which a process can have only one.
    #[serde(default)]
    pub own_subscriber: bool,
}

impl Job {
    /// The workspace folder as it appears in the paths of line tables.
    pub fn sources(&self) -> &Path {
        self.compiled_in.as_deref().unwrap_or(&self.workspace)
    }
}

/// The path of the separate line tables of a stripped `executable`.
pub fn line_tables(executable: &Path) -> PathBuf {
    let mut name = executable.as_os_str().to_owned();
    name.push(".debug");
    name.into()
}

/// The task of a profiled program: prepare the device and, with `report`, write a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramJob {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// The name of the program's target.
    pub program: String,
    /// Its package.
    pub package: String,
    /// The file that the [`Measurement`] is written to. Without it the program is not followed.
    pub report: Option<PathBuf>,
    /// The file that receives JSON lines of [`Progress`] with views of the live memory; `None` for
    /// no views.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<PathBuf>,
    /// The device. It must not be `auto`, because the command resolves that first.
    pub device: Request,
    /// The limits in force.
    pub limits: Limits,
    /// The workspace; paths of source files are shown relative to it.
    pub workspace: PathBuf,
    /// Version of candle-core in the build.
    pub candle: String,
}

/// What a test process has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// The figures and facts of the run.
    pub record: Record,
    /// The attribution, whose stacks have no names yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unresolved: Option<Box<Unresolved>>,
}

/// The first process to create this file writes the report; child processes write none.
pub fn claim(report: &Path) -> PathBuf {
    report.with_extension("claimed")
}

/// The reason why a process could not measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason as a sentence.
    pub why: String,
    /// True if the device could not be opened.
    pub device: bool,
    /// The next step for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { why: error.to_string(), device: false, hint: None }
    }
}

/// The path of the [`Refusal`] that a process writes if it writes no report to `report`.
pub fn refusal(report: &Path) -> PathBuf {
    report.with_extension("refused")
}

/// The progress of a running test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Iterations done, warm-up included.
    pub iteration: u32,
    /// Iterations in total, warm-up included.
    pub of: u32,
    /// Live bytes of the judged spaces.
    pub live: u64,
    /// The time of a soak, whose total number of iterations is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<SoakTime>,
    /// The live memory, if the job asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Box<LiveView>>,
}

/// The live memory of a running program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveView {
    /// Time since the process began to report.
    pub milliseconds: u64,
    /// The folders of source files in the executable's line tables.
    pub sources: Sources,
    /// The spaces with memory.
    pub spaces: Vec<LiveMemory>,
    /// The call stacks that hold most live memory, at most [`MOST_LIVE_STACKS`].
    pub stacks: Vec<LiveStack>,
}

/// The most call stacks of a [`LiveView`], so that its line has less than 64 KiB.
pub const MOST_LIVE_STACKS: usize = 24;

/// The live memory of one space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveMemory {
    /// The space.
    pub space: Space,
    /// Live bytes.
    pub live: u64,
    /// The highest number of live bytes so far.
    pub peak: u64,
    /// The bytes of all allocations so far.
    pub allocated: u64,
}

/// The live memory of one call stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveStack {
    /// The space of the memory.
    pub space: Space,
    /// Live bytes.
    pub bytes: u64,
    /// Live blocks.
    pub count: u64,
    /// The calls as addresses in the executable, innermost first.
    pub calls: Vec<u64>,
}

/// The time that a soak has taken so far, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakTime {
    /// Time since the first iteration began.
    pub elapsed: u64,
    /// The time that was asked for.
    pub asked: u64,
}
