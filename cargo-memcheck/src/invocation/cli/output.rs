//! The amount, the audience and the form of output.

use clap::ValueEnum;

use crate::invocation::values::{Color, Format, Verbosity};

/// Flags for the form of the output. Every subcommand whose output a program may read has these
/// flags.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormFlags {
    /// Output format: text for people, or one JSON object per line on stdout.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) message_format: Format,
    /// Produce color output.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// The flags for the form and the amount of output.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    #[command(flatten)]
    pub(crate) form: FormFlags,
    /// Print more: limits and their sources, all call sites, the whole output of tests.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print less: failures and the summary only.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// `--annotations`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnnotationsFlag {
    /// Those of GitHub inside GitHub Actions, otherwise none.
    #[default]
    Auto,
    /// Workflow commands of GitHub.
    Github,
    /// No annotations.
    None,
}

impl OutputFlags {
    /// The amount of output that the flags ask for.
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.verbose, self.quiet) {
            (true, _) => Verbosity::Verbose,
            (false, true) => Verbosity::Quiet,
            (false, false) => Verbosity::Normal,
        }
    }
}
