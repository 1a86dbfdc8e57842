//! How results are told, and what those who are told must know of the run.

use std::path::PathBuf;

use crate::cli::{AnnotationsFlag, FormatFlag, NoTestsFlag, OutputFlags, ReportFlag, ReportFlags};

/// What happens to the output of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// Kept, and shown for tests that fail.
    Kept,
    /// Shown as it comes.
    Shown,
    /// Left alone: what a bench prints on stdout is its result.
    None,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Failures and the summary.
    Quiet,
    /// A line per test.
    Normal,
    /// Everything.
    Verbose,
}

impl Verbosity {
    /// What was typed.
    pub(crate) fn of(output: &OutputFlags) -> Self {
        match (output.verbose, output.quiet) {
            (true, _) => Self::Verbose,
            (false, true) => Self::Quiet,
            (false, false) => Self::Normal,
        }
    }
}

/// Whether annotations are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Annotations {
    /// GitHub's workflow commands.
    Github,
    /// None.
    None,
}

/// How results are told.
#[derive(Debug, Clone)]
pub(crate) struct Telling {
    /// What stdout carries.
    pub(crate) format: FormatFlag,
    /// How much is said.
    pub(crate) verbosity: Verbosity,
    /// Reports to write.
    pub(crate) reports: Vec<ReportFlag>,
    /// Annotations in CI.
    pub(crate) annotations: Annotations,
}

/// Where pending snapshots lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Beside the tests.
    Beside,
    /// In this folder, which mirrors the workspace.
    In(PathBuf),
}

/// Whom a run is told to: how, and what they must know of it.
#[derive(Debug, Clone)]
pub(crate) struct Audience<'a> {
    /// How results are told.
    pub(crate) telling: &'a Telling,
    /// Where pending snapshots lie.
    pub(crate) pending: Pending,
    /// What happened to the output of tests.
    pub(crate) capture: Capture,
    /// What it means that no test is selected.
    pub(crate) no_tests: NoTestsFlag,
    /// Which tests were asked for by name.
    pub(crate) filters: &'a [String],
}

impl Telling {
    /// Reads flags and environment.
    pub(crate) fn read(
        output: &OutputFlags,
        report: &ReportFlags,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            format: output.form.message_format,
            verbosity: Verbosity::of(output),
            reports: report.report.clone(),
            annotations: match report.annotations {
                AnnotationsFlag::Github => Annotations::Github,
                AnnotationsFlag::None => Annotations::None,
                AnnotationsFlag::Auto if get("GITHUB_ACTIONS").as_deref() == Some("true") => {
                    Annotations::Github
                }
                AnnotationsFlag::Auto => Annotations::None,
            },
        }
    }
}
