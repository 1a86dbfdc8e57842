//! The reporting options of a run, and the facts about the run that the presenters need.

use std::path::PathBuf;

use memcheck_core::judgement::location::Roots;

use crate::invocation::cli::{AnnotationsFlag, OutputFlags, ReportFlags};
use crate::invocation::values::{Format, NoTests, ReportFile, Verbosity, with_opened};
use crate::system::process::Capture;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Annotations {
    Github,
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct ReportingOptions {
    pub(crate) format: Format,
    pub(crate) verbosity: Verbosity,
    pub(crate) reports: Vec<ReportFile>,
    /// Show the HTML report in a browser.
    pub(crate) open: bool,
    /// The address of a line in an editor, with `{path}` and `{line}`.
    pub(crate) editor: Option<String>,
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    NextToBaselines,
    In(PathBuf),
    /// Those of a run that only compares revisions, which are not to be reviewed.
    Unlisted,
}

#[derive(Debug, Clone)]
pub(crate) struct ReportContext<'a> {
    pub(crate) reporting: &'a ReportingOptions,
    pub(crate) pending: Pending,
    pub(crate) roots: Roots<'a>,
    pub(crate) capture: Capture,
    pub(crate) no_tests: NoTests,
    pub(crate) filters: &'a [String],
    /// The results are those of an earlier run.
    pub(crate) is_replay: bool,
}

impl ReportingOptions {
    pub(crate) fn read(
        output: &OutputFlags,
        ReportFlags { report, open, editor_url, annotations }: &ReportFlags,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            format: output.form.message_format,
            verbosity: output.verbosity(),
            reports: with_opened(report.clone(), *open),
            open: *open,
            editor: editor_url.as_ref().map(|url| url.0.clone()),
            annotations: match annotations {
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
