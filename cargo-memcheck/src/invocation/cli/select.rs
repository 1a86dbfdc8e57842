//! Flags that select tests and devices.

use std::path::PathBuf;

use crate::invocation::values::RunIgnored;

/// Flags that select tests and devices.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectFlags {
    /// Only tests whose path contains one of these (default: all).
    #[arg(value_name = "FILTERS")]
    pub(crate) filters: Vec<String>,
    /// Match filters exactly instead of by substring.
    #[arg(long)]
    pub(crate) exact: bool,
    /// Whether to run tests with #[ignore].
    #[arg(long, value_name = "WHICH", default_value = "default")]
    pub(crate) run_ignored: RunIgnored,
    /// Device to run on: auto, cpu, sim, sim:CARD, cuda or cuda:N (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Read this configuration file instead of .config/memcheck.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) config_file: Option<PathBuf>,
    /// Directory with shared libraries that tests need (may be repeated).
    ///
    /// The libraries of Python's CUDA wheels are found without it.
    #[arg(long, value_name = "DIR")]
    pub(crate) library_path: Vec<PathBuf>,
}

/// Whether the command may write to the source tree, for commands that use baselines.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct CiFlags {
    /// Do not write into the source tree, and be strict about baselines (on if CI is detected).
    #[arg(long, overrides_with = "no_ci")]
    pub(crate) ci: bool,
    /// Work as on a developer's machine, even if CI is detected.
    #[arg(long, overrides_with = "ci")]
    pub(crate) no_ci: bool,
}

/// The place of the baselines, for commands that use them.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct BaselineFlags {
    /// Directory of the baselines, which mirrors the workspace (default: next to the tests).
    #[arg(long, value_name = "DIR")]
    pub(crate) baselines: Option<PathBuf>,
}

/// Flags that select a part of the tests.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct PartFlags {
    /// Run only the M-th of N parts of the tests (hash:M/N, M from 1).
    #[arg(long, value_name = "hash:M/N")]
    pub(crate) partition: Option<String>,
}
