//! The amount, the audience and the form of output.

use std::path::PathBuf;

use clap::ValueEnum;

/// Flags for the form of the output. Every subcommand whose output a program may read has these flags.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormFlags {
    /// Form of the results: text for people, or one JSON object a line on stdout.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) message_format: FormatFlag,
    /// When to use colours.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorFlag,
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

/// `--message-format`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatFlag {
    /// Text for people, with results on stdout and messages on stderr.
    #[default]
    Human,
    /// One JSON object a line, on stdout.
    Json,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorFlag {
    /// On a terminal that supports them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
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

/// `--report KIND=PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFlag {
    /// The kind, one of [`ReportFlag::KINDS`].
    pub(crate) kind: &'static str,
    /// Path of the report.
    pub(crate) path: PathBuf,
}

impl ReportFlag {
    /// The kinds of reports.
    pub(crate) const KINDS: [&'static str; 6] =
        ["junit", "json", "markdown", "html", "flamegraph", "trace"];
}

impl std::str::FromStr for ReportFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::KINDS.join(", ");
        let (kind, path) =
            text.split_once('=').ok_or_else(|| format!("write KIND=PATH, KIND one of {known}"))?;
        let kind = Self::KINDS
            .into_iter()
            .find(|known| *known == kind)
            .ok_or_else(|| format!("`{kind}` is not a report that can be written: {known}"))?;
        if path.is_empty() {
            return Err(format!("`{kind}=` needs a path"));
        }
        Ok(Self { kind, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_kind_and_its_path() {
        let report: ReportFlag = "junit=out/a=b.xml".parse().unwrap();
        assert_eq!((report.kind, report.path), ("junit", PathBuf::from("out/a=b.xml")));
        for wrong in ["junit", "pdf=a", "json="] {
            assert!(wrong.parse::<ReportFlag>().is_err(), "{wrong}");
        }
        let error = "pdf=a".parse::<ReportFlag>().unwrap_err();
        assert!(error.contains("junit, json, markdown, html, flamegraph, trace"), "{error}");
    }
}
