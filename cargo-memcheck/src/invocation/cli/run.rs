//! The arguments of `run`, `list`, `doctor` and `env`, which consist of groups of flags.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use memcheck_core::runs::plan::Explain;

use super::{
    AnnotationsFlag, BaselineFlags, CiFlags, FormFlags, LevelFlags, LimitFlags, OutputFlags,
    PartFlags, SelectFlags, WorkspaceFlags,
};
use crate::invocation::features::COMPARISON;
use crate::invocation::values::{
    CargoOptions, EditorUrl, HistoryPlace, NoTests, ReportFile, UnpackOptions,
};

const EXAMPLES: &str = "\
Examples:
  cargo memcheck                                 All tests
  cargo memcheck llama --device sim:h200         Tests with `llama` in their path
  cargo memcheck --failed                        Those that failed last
  cargo memcheck --open                          All, and the report in a browser
  cargo memcheck --ci --report junit=junit.xml   In CI";

/// `cargo memcheck run`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    /// Only the tests that failed or were not measured when they last ran; all if there are none.
    #[arg(long, help_heading = "Selection", conflicts_with = "exact")]
    pub(crate) failed: bool,
    /// Review the pending snapshots after the run.
    #[arg(long, help_heading = "Selection", conflicts_with = "ci")]
    pub(crate) review: bool,
    #[command(flatten)]
    pub(crate) ci: CiFlags,
    #[command(flatten)]
    pub(crate) baselines: BaselineFlags,
    #[command(flatten)]
    pub(crate) part: PartFlags,
    #[command(flatten)]
    pub(crate) archive: UnpackOptions,
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
    pub(crate) cargo: CargoOptions,
    /// Directory for the results, which `report` reads (default: target/memcheck/results).
    #[arg(long, value_name = "DIR", help_heading = "Reports")]
    pub(crate) results: Option<PathBuf>,
    /// Write pending snapshots below the results instead of next to those of other runs.
    #[arg(long, hide = true)]
    pub(crate) own_pending: bool,
    /// Append the figures to this file, or to the notes of the commit (git), which `history` reads.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Reports",
        hide = !COMPARISON.is_built
    )]
    pub(crate) history: Option<HistoryPlace>,
    /// Arguments for the test harness.
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
    pub(crate) archive: UnpackOptions,
    /// Command that lists the tests of a binary that cannot be started on this machine ("srun
    /// --gres=gpu:1").
    #[arg(long, value_name = "COMMAND", help_heading = "Running")]
    pub(crate) runner: Option<String>,
    /// Read the list of tests from the archive, and start nothing.
    #[arg(long, requires = "archive_file", help_heading = "Archives")]
    #[arg(conflicts_with_all = ["runner", "extract_to", "workspace_remap", "line_tables"])]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
}

/// `cargo memcheck doctor`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Device to run the planted leak on (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Only check, and do not build or run.
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
}

/// `cargo memcheck env`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct EnvArgs {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlags,
    #[command(flatten)]
    pub(crate) form: FormFlags,
}

/// Flags that determine how tests are run.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct ScheduleFlags {
    /// Command that starts each test process ("srun --gres=gpu:1").
    ///
    /// The command line of the process follows it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) runner: Option<String>,
    /// Number of tests that run at the same time.
    ///
    /// A real GPU runs one test at a time in any case. The default is the number of cores, on the
    /// CPU divided by RAYON_NUM_THREADS, and on real GPUs the number of GPUs. It is 1 if output is
    /// not captured, or if a launcher starts the tests.
    #[arg(long, value_name = "N")]
    pub(crate) test_threads: Option<String>,
    /// When to look for call sites (default: failed).
    ///
    /// `failed` runs a test once more if it failed on memory or has new figures. `always` looks in
    /// every run.
    #[arg(long, value_name = "WHEN")]
    #[arg(value_parser = PossibleValuesParser::new(Explain::NAMES).try_map(|it| it.parse::<Explain>()))]
    pub(crate) explain: Option<Explain>,
    /// Run each test N times in a row, without call sites, and report every figure that is not
    /// identical in all runs.
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<String>,
    /// Then iterate each test for this time ("10m"), for leaks that begin late or are rare.
    ///
    /// It is a separate process, and other figures and baselines do not change.
    #[arg(long, value_name = "DURATION", conflicts_with = "repeat")]
    pub(crate) soak: Option<String>,
    /// Stop at the first failure.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// What to do if no test is selected.
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(crate) no_tests: NoTests,
    /// Show the output of tests while they run.
    #[arg(long, visible_alias = "nocapture")]
    pub(crate) no_capture: bool,
}

/// Reports that are written in addition to the printed output.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportFlags {
    /// Write a report: junit=PATH, json=PATH, csv=PATH, bencher=PATH, sarif=PATH, markdown=PATH,
    /// html=PATH, flamegraph=PATH, trace=PATH, pprof=PATH, memory-viz=PATH, memory-viz-json=PATH
    /// or badge=PATH (may be repeated; html without a path is target/memcheck/report.html).
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<ReportFile>,
    /// Open the HTML report in a browser, which $BROWSER can name.
    #[cfg_attr(not(feature = "exports"), arg(skip))]
    #[cfg_attr(feature = "exports", arg(long))]
    pub(crate) open: bool,
    /// Link lines of the terminal and of the HTML report to an editor, by an address with {path} and
    /// {line}, such as vscode://file{path}:{line}.
    #[arg(long, value_name = "URL")]
    pub(crate) editor_url: Option<EditorUrl>,
    /// Annotate source lines in CI (on stderr).
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub(crate) annotations: AnnotationsFlag,
}
