//! What the command and a test binary say to each other.
//!
//! * To ask for its tests, the binary is started with [`crate::variables::LIST`]
//!   set and `--list` as its argument: one that carries memory tests answers
//!   with a [`Listing`] as JSON on stdout before its test harness starts, any
//!   other prints its harness's own list, which no [`Listing`] can be read from.
//! * To run one test, it is started as the harness expects (`NAME --exact`)
//!   with a [`Job`] in [`crate::variables::JOB`]. The [`Report`] comes back in a
//!   file, or beside it in words why there is none; the [`Progress`] as JSON
//!   lines on a pipe, or in a file where a launcher stands between.
//! * To profile a program it is started as ever, with a [`ProgramJob`] in
//!   [`crate::variables::PROGRAM`]. Its [`Report`] comes when it exits. A bench is
//!   given one too: its device is made ready, and it reports to nobody.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attribution::Unresolved;
use crate::baseline::Figures;
use crate::device::{Family, Need, Request};
use crate::finding::{Code, Finding, Level};
use crate::limits::{Layer, Limits};
use crate::record::Record;
use crate::shape::Scaling;

/// Version of this page. A binary of another version is asked to be rebuilt.
pub const VERSION: u32 = 4;

/// What the binary carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// [`VERSION`] of the binary.
    pub memcheck: u32,
    /// The devices that the binary was built for, apart from the CPU: `sim`, `cuda`.
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
    /// The values of its case, by name; empty where the test has no cases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case: BTreeMap<String, String>,
    /// The source file, as the compiler was given it.
    pub file: PathBuf,
    /// The line of the attribute.
    pub line: u32,
    /// Whether `#[ignore]` stands on it.
    pub ignored: bool,
    /// Where it makes sense.
    pub need: Need,
    /// Whether its body is given no device: then it runs on the CPU, and the
    /// host is judged, whatever the others run on.
    pub deviceless: bool,
    /// The limits that its attribute says.
    pub attribute: Layer,
    /// How fast figures may grow over its cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// The folder of the package's Cargo.toml, as the compiler knew it.
    pub manifest_dir: PathBuf,
    /// The snapshot's file name, without suffix and extension: `mem__llama__kv_cache`.
    pub snapshot: String,
}

impl Entry {
    /// The family that the test runs on where the others run on `family`.
    pub fn family_on(&self, family: Family) -> Family {
        family_on(self.deviceless, self.need, family)
    }
}

/// The family that a test runs on where the others run on `family`: a body
/// that is given no device runs on the CPU, unless its attribute says `cuda`.
pub fn family_on(deviceless: bool, need: Need, family: Family) -> Family {
    if deviceless && need != Need::Cuda { Family::Cpu } else { family }
}

/// Whether a test process follows every block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Follow {
    /// Counters only.
    #[default]
    No,
    /// Every block with its stack and scope.
    Yes,
    /// The same, and what each module of the model holds.
    Modules,
}

/// How far the iterations of a test go beyond the measured ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// They do not go further.
    #[default]
    Screen,
    /// If the measured iterations leave nothing behind and cost little, as far as
    /// leaks can be found that begin later or are rare.
    Horizon,
    /// Until the growth is decided, or the budget is spent.
    Decision,
}

/// What one test process is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// [`VERSION`] of who wrote it.
    pub version: u32,
    /// The test, by its path in the binary.
    pub test: String,
    /// Where the [`Report`] goes.
    pub report: PathBuf,
    /// A file that takes JSON lines of [`Progress`], such as `/dev/fd/3`.
    pub progress: Option<PathBuf>,
    /// The device. Never `auto`: that is resolved before.
    pub device: Request,
    /// The limits in force, which the parent has resolved from all sources.
    pub limits: Limits,
    /// What is done about bookkeeping findings.
    pub levels: BTreeMap<Code, Level>,
    /// Whether bookkeeping is judged as in CI.
    pub ci: bool,
    /// The folder below which source files are named.
    pub workspace: PathBuf,
    /// The folder that it was while the test was compiled, where that is another
    /// one: line tables name source files below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled_in: Option<PathBuf>,
    /// Version of candle-core in the build, for the baseline's header.
    pub candle: String,
    /// Whether every block is followed to its place in the program.
    #[serde(default)]
    pub follow: Follow,
    /// How far the iterations go.
    #[serde(default)]
    pub reach: Reach,
    /// The figures of an earlier run that this run explains. If the run measures
    /// others, it writes no snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Figures>,
    /// Values of its case in place of those that its attribute says, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case: BTreeMap<String, String>,
    /// The id of the process that started this one, where the test is to end
    /// with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// True if no command reads the report. Then this process looks up the names of
    /// call stacks, and judges the limits across tests by the baselines of the others.
    #[serde(default)]
    pub alone: bool,
    /// Whether its body installs a `tracing` subscriber of its own, as it has
    /// just shown: then nobody else does.
    #[serde(default)]
    pub own_subscriber: bool,
}

impl Job {
    /// The folder below which line tables name source files.
    pub fn sources(&self) -> &Path {
        self.compiled_in.as_deref().unwrap_or(&self.workspace)
    }
}

/// The file beside an executable that was stripped, which has its line tables.
pub fn line_tables(executable: &Path) -> PathBuf {
    let mut name = executable.as_os_str().to_owned();
    name.push(".debug");
    name.into()
}

/// What a program is to do: nothing but to leave a report, where one is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramJob {
    /// [`VERSION`] of who wrote it.
    pub version: u32,
    /// The program, by the name of its target.
    pub program: String,
    /// Its package.
    pub package: String,
    /// Where the [`Report`] goes; without it the program is not followed.
    pub report: Option<PathBuf>,
    /// The device. Never `auto`: that is resolved before.
    pub device: Request,
    /// The limits in force.
    pub limits: Limits,
    /// The folder below which source files are named.
    pub workspace: PathBuf,
    /// Version of candle-core in the build.
    pub candle: String,
}

/// What a test process did: the record, and what was made of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`] of who wrote it.
    pub version: u32,
    /// What was measured.
    pub record: Record,
    /// The attribution of the record, as long as its call stacks have no names.
    /// Whoever resolves it judges the record: until then, the verdict has only
    /// findings about the process, and the pending snapshot may have to be removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unresolved: Option<Box<Unresolved>>,
    /// What was found in it.
    pub verdict: Verdict,
    /// The snapshot, accepted or not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshot: Option<PathBuf>,
    /// The pending snapshot that was written, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pending: Option<PathBuf>,
}

/// The file by which a program says that it is the one that will report, once it
/// has begun.
pub fn claim(report: &Path) -> PathBuf {
    report.with_extension("claimed")
}

/// Why a process could not measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// In words.
    pub why: String,
    /// Whether it is the device that could not be opened.
    pub device: bool,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { why: error.to_string(), device: false, hint: None }
    }
}

/// The file in which a process says why it could not measure, as a [`Refusal`],
/// where it leaves no report at `report`.
pub fn refusal(report: &Path) -> PathBuf {
    report.with_extension("refused")
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Measured, and within its limits.
    Passed,
    /// Within its limits, but a denied bookkeeping finding needs a person.
    NeedsReview,
    /// A measured finding.
    Failed,
    /// The instrument did not see what it judges.
    NotMeasured,
    /// Not run.
    Ignored,
}

/// The verdict on a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How the test ended.
    pub status: Status,
    /// What was found, the gravest first. Allowed findings are left out.
    pub findings: Vec<Finding>,
    /// Codes among them that are denied bookkeeping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Code>,
}

impl Verdict {
    /// Whether a finding of this kind is part of it.
    pub fn has(&self, code: Code) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }
}

/// Where a running test is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Iterations done, warm-up counted in.
    pub iteration: u32,
    /// Iterations in all.
    pub of: u32,
    /// Live bytes of the judged spaces.
    pub live: u64,
}
