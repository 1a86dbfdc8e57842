//! The arguments of `run`, `list`, `doctor` and `env`: groups of flags, put together.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use memcheck_core::explain::Explain;

use super::{
    AnnotationsFlag, ArchiveFlags, CargoFlags, CiFlags, FormFlags, LevelFlags, LimitFlags,
    OutputFlags, PartFlags, ReportFlag, SelectFlags,
};

/// `cargo memcheck run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    #[command(flatten)]
    pub(crate) ci: CiFlags,
    #[command(flatten)]
    pub(crate) part: PartFlags,
    #[command(flatten)]
    pub(crate) archive: ArchiveFlags,
    #[command(flatten)]
    pub(crate) schedule: ScheduleFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) levels: LevelFlags,
    #[command(flatten)]
    pub(crate) report: ReportFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoFlags,
    /// Directory for the results, which `report` reads (target/memcheck/results unless said otherwise).
    #[arg(long, value_name = "DIR", help_heading = "Reports")]
    pub(crate) results: Option<PathBuf>,
    /// Arguments of the test harness.
    #[arg(last = true, value_name = "LIBTEST-ARGS")]
    pub(crate) libtest: Vec<String>,
}

/// `cargo memcheck list`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    #[command(flatten)]
    pub(crate) ci: CiFlags,
    #[command(flatten)]
    pub(crate) part: PartFlags,
    #[command(flatten)]
    pub(crate) archive: ArchiveFlags,
    /// Command that asks a test binary for its tests where that cannot be started here ("srun --gres=gpu:1").
    #[arg(long, value_name = "COMMAND", help_heading = "Running")]
    pub(crate) runner: Option<String>,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoFlags,
}

impl ListArgs {
    /// The same as arguments of `run`.
    pub(crate) fn as_run(&self) -> RunArgs {
        let Self { select, ci, part, archive, runner, limits, output, cargo } = self.clone();
        let schedule = ScheduleFlags { runner, ..ScheduleFlags::default() };
        RunArgs { select, ci, part, archive, schedule, limits, output, cargo, ..RunArgs::default() }
    }
}

/// `cargo memcheck doctor`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoFlags,
    /// Device that the planted leak runs on (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Look only: build and run nothing.
    #[arg(long)]
    pub(crate) no_run: bool,
}

/// `cargo memcheck env`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct EnvArgs {
    /// Path to Cargo.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Directory for what is built.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) target_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormFlags,
}

/// How the tests are run.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct ScheduleFlags {
    /// Command that starts each test process ("srun --gres=gpu:1"); the process's own command line follows it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) runner: Option<String>,
    /// Tests that run at the same time (real GPUs run one each at a time anyway; with --runner it is 1 unless said, on every device).
    #[arg(long, value_name = "N")]
    pub(crate) test_threads: Option<String>,
    /// When call sites are looked for: in a second run of a test that failed on
    /// memory or whose figures are new (failed), never, or in every run (always).
    #[arg(long, value_name = "WHEN", value_parser = explain())]
    pub(crate) explain: Option<Explain>,
    /// Run each test N times in a row, without call sites, and report every figure that
    /// is not identical in all runs.
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<String>,
    /// Stop at the first failure.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// What it means when no test is selected.
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(crate) no_tests: NoTestsFlag,
    /// Show the output of tests while they run.
    #[arg(long, visible_alias = "nocapture")]
    pub(crate) no_capture: bool,
}

fn explain() -> impl TypedValueParser<Value = Explain> {
    PossibleValuesParser::new(Explain::NAMES).try_map(|text| text.parse::<Explain>())
}

/// `--no-tests`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoTestsFlag {
    /// Exit code 4.
    #[default]
    Fail,
    /// A warning, exit code 0.
    Warn,
    /// Nothing, exit code 0.
    Pass,
}

/// What is written beside what is printed.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportFlags {
    /// Write a report: junit=PATH, json=PATH, markdown=PATH, html=PATH, flamegraph=PATH or trace=PATH (may be repeated).
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<ReportFlag>,
    /// Annotate source lines in CI (on stderr).
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub(crate) annotations: AnnotationsFlag,
}
