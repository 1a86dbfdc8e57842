//! Which tests, on which devices.

use std::path::PathBuf;

use clap::ValueEnum;

/// Flags that choose tests and devices.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectFlags {
    /// Only tests whose path contains one of these.
    #[arg(value_name = "FILTERS")]
    pub(crate) filters: Vec<String>,
    /// Match filters exactly rather than by substring.
    #[arg(long)]
    pub(crate) exact: bool,
    /// Whether tests with #[ignore] are run.
    #[arg(long, value_name = "WHICH", default_value = "default")]
    pub(crate) run_ignored: RunIgnoredFlag,
    /// Device to run on: auto, cpu, sim, sim:CARD, cuda or cuda:N (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Configuration file instead of .config/memcheck.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) config_file: Option<PathBuf>,
    /// Directory with shared libraries that tests need (may be repeated; those of Python's CUDA wheels are found by themselves).
    #[arg(long, value_name = "DIR")]
    pub(crate) library_path: Vec<PathBuf>,
}

/// Whether the source tree is left alone; of commands that care for baselines.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct CiFlags {
    /// Leave the source tree alone and be strict about baselines (on when CI is detected).
    #[arg(long, overrides_with = "no_ci")]
    pub(crate) ci: bool,
    /// Work as on a developer's machine, even where CI is detected.
    #[arg(long, overrides_with = "ci")]
    pub(crate) no_ci: bool,
}

/// Which part of many tests.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct PartFlags {
    /// Run only the M-th of N parts of the tests (hash:M/N, M from 1).
    #[arg(long, value_name = "hash:M/N")]
    pub(crate) partition: Option<String>,
}

/// `--run-ignored`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunIgnoredFlag {
    /// Tests without #[ignore].
    #[default]
    Default,
    /// Tests with #[ignore] only.
    Only,
    /// Both.
    All,
}
