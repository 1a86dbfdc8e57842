//! The form of the output.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use memcheck_core::presentation::profile::{By, Sort};

/// `--message-format`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people, with results on stdout and messages on stderr.
    #[default]
    Human,
    /// One JSON object a line, on stdout.
    Json,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that supports them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The amount of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Failures and the summary.
    Quiet,
    /// One line for each test.
    Normal,
    /// All details.
    Verbose,
}

/// The layout of the operation table.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct ProfileLayout {
    /// Group rows by operation, call site or scope.
    ///
    /// The row of a scope does not include the scopes nested in it.
    #[arg(long, value_name = "WHAT", default_value = "op")]
    #[arg(value_parser = PossibleValuesParser::new(By::NAMES).try_map(|it| it.parse::<By>()))]
    pub(crate) by: By,
    /// Column to sort rows by.
    #[arg(long, value_name = "COLUMN", default_value = "peak")]
    #[arg(value_parser = PossibleValuesParser::new(Sort::NAMES).try_map(|it| it.parse::<Sort>()))]
    pub(crate) sort: Sort,
    /// Number of rows; 0 for all.
    #[arg(long, value_name = "N", default_value = "15")]
    pub(crate) top: usize,
}
