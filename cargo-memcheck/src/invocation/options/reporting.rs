//! The reporting options of a run, and the facts about the run that the presenters need.

use std::path::PathBuf;

use crate::invocation::cli::{AnnotationsFlag, OutputFlags, ReportFlags};
use crate::invocation::values::{Format, NoTests, ReportFile, Verbosity};
use crate::system::process::Capture;

/// The format of annotations in CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Annotations {
    Github,
    None,
}

/// The reporting options of a run.
#[derive(Debug, Clone)]
pub(crate) struct ReportingOptions {
    /// The format of stdout.
    pub(crate) format: Format,
    pub(crate) verbosity: Verbosity,
    pub(crate) reports: Vec<ReportFile>,
    pub(crate) annotations: Annotations,
}

/// The location of pending snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Next to the tests.
    NextToTests,
    /// In this folder, which mirrors the folders of the workspace.
    In(PathBuf),
}

/// The inputs of the presenters: the reporting options, and facts about the run.
#[derive(Debug, Clone)]
pub(crate) struct ReportContext<'a> {
    pub(crate) reporting: &'a ReportingOptions,
    /// The location of pending snapshots.
    pub(crate) pending: Pending,
    /// How the command treated the output of tests.
    pub(crate) capture: Capture,
    /// The result of a run in which no test is selected.
    pub(crate) no_tests: NoTests,
    /// The filters of the command line.
    pub(crate) filters: &'a [String],
}

impl ReportingOptions {
    pub(crate) fn read(
        output: &OutputFlags,
        report: &ReportFlags,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            format: output.form.message_format,
            verbosity: output.verbosity(),
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
