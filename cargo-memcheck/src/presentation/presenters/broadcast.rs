//! Distributes the events of a run to all presenters, and writes the report files at the end of the
//! run.

use std::path::{Path, PathBuf};

use memcheck_core::wire::exit;

use super::annotations::GithubAnnotations;
use super::flamegraph::FlameGraph;
use super::html::Html;
use super::json::JsonLines;
use super::junit::Junit;
use super::markdown::Markdown;
use super::terminal::Terminal;
use super::trace::Trace;
use crate::invocation::options::{Annotations, ReportContext};
use crate::invocation::values::ReportFile;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::tally::Tally;
use crate::system::error::CommandError;
use crate::system::process::{INTERRUPTED, Interrupt};

pub(crate) struct Broadcast {
    presenters: Vec<Box<dyn Presenter>>,
    reports: Vec<(PathBuf, Box<dyn ReportWriter>)>,
}

#[derive(Debug, thiserror::Error)]
#[error("report {path}: {why}", path = .0.display(), why = .1)]
struct ReportError(PathBuf, String);

impl CommandError for ReportError {
    fn exit_code(&self) -> u8 {
        exit::REPORT
    }
}

impl Broadcast {
    /// `on_stdout` is the presenter that writes to stdout.
    pub(crate) fn new(
        report_context: &ReportContext<'_>,
        workspace_root: &Path,
        legs: usize,
        on_stdout: Option<Box<dyn Presenter>>,
    ) -> Self {
        let mut presenters: Vec<Box<dyn Presenter>> =
            vec![Box::new(Terminal::new(report_context, legs))];
        if report_context.reporting.annotations == Annotations::Github {
            presenters.push(Box::new(GithubAnnotations::new(workspace_root.to_owned())));
        }
        presenters.extend(on_stdout);
        let reports = report_context.reporting.reports.iter().map(|ReportFile { kind, path }| {
            let report: Box<dyn ReportWriter> = match *kind {
                "junit" => Box::new(Junit::default()),
                "markdown" => Box::new(Markdown::default()),
                "html" => Box::new(Html::default()),
                "flamegraph" => Box::new(FlameGraph::default()),
                "trace" => Box::new(Trace::default()),
                _ => Box::new(JsonLines::new(Vec::new())),
            };
            (path.clone(), report)
        });
        Self { presenters, reports: reports.collect() }
    }

    pub(crate) fn add_report(&mut self, path: PathBuf, report: impl ReportWriter + 'static) {
        self.reports.push((path, Box::new(report)));
    }

    pub(crate) fn notify(&mut self, mut what: impl FnMut(&mut dyn Presenter)) {
        for presenter in &mut self.presenters {
            what(presenter.as_mut());
        }
        for (_, report) in &mut self.reports {
            what(report.as_mut());
        }
    }

    /// Reports come first, because the exit code in the summary depends on their success.
    pub(crate) fn finish(mut self, tally: &Tally, exit_code: u8) -> u8 {
        let mut exit_code = exit_code;
        for (path, report) in &mut self.reports {
            report.finished(tally, exit_code);
            if let Err(error) = write_report(path, report.as_ref()) {
                let error = ReportError(path.clone(), format!("{error:#}"));
                super::failure(&error.into());
                if exit_code == exit::OK {
                    exit_code = exit::REPORT;
                }
            }
        }
        // A signal may have arrived while the reports were written.
        let interrupted = tally.interrupted || Interrupt::has_come();
        if interrupted && tally.failure.is_none() {
            exit_code = INTERRUPTED;
        }
        let tally = Tally { interrupted, ..tally.clone() };
        super::json::close();
        for presenter in &mut self.presenters {
            presenter.finished(&tally, exit_code);
        }
        exit_code
    }
}

fn write_report(path: &Path, report: &dyn ReportWriter) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, report.text()?)?;
    Ok(())
}
