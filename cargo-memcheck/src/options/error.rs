//! Why a command line makes no sense.

use memcheck_core::exit;
use memcheck_core::variables::VariableError;

use crate::error::Expected;
use crate::launcher::LauncherError;

/// Why a command line makes no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    /// A code or a level.
    #[error(transparent)]
    Code(#[from] memcheck_core::finding::CodeError),
    /// A variable of the environment.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// `--partition`.
    #[error("`{0}` is not a partition: write hash:M/N with M from 1 to N")]
    Partition(String),
    /// `--test-threads`.
    #[error("`{0}` is not a number of threads")]
    Threads(String),
    /// `--repeat`.
    #[error("`{0}` is not a number of runs: --repeat takes a whole number from 1 on")]
    Repeat(String),
    /// `--repeat` together with `--explain`.
    #[error("--repeat compares runs without call sites: leave --explain out")]
    RepeatExplains,
    /// `--runner`.
    #[error("--runner: {0}")]
    Launcher(LauncherError),
    /// Flags of a build beside something that was built.
    #[error("--archive-file and cargo's options exclude each other: the archive is built already")]
    Built,
    /// A way to select tests that says nothing about files.
    #[error("prune takes filters, and no {0}: it removes files, not tests")]
    Prune(&'static str),
}

impl Expected for OptionsError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }
}
