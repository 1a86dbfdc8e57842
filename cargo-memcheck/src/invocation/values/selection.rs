//! The selection of tests.

use clap::ValueEnum;

/// `--run-ignored`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunIgnored {
    /// Only tests without #[ignore].
    #[default]
    Default,
    /// Only tests with #[ignore].
    Only,
    /// Both.
    All,
}

/// `--no-tests`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoTests {
    /// Exit with code 4.
    #[default]
    Fail,
    /// Print a warning and exit with code 0.
    Warn,
    /// Exit with code 0.
    Pass,
}
