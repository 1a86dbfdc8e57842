//! Passes events to every presenter of a run, for the fuzz targets and for the measurements of
//! scale.

use std::path::Path;

use memcheck_core::judgement::location::Roots;

use super::annotations::GithubAnnotations;
use super::reports;
use super::terminal::Terminal;
#[cfg(test)]
use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::options::{Annotations, Pending, ReportContext, ReportingOptions};
use crate::invocation::values::{Format, NoTests, ReportKind, Verbosity};
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::printing::SuspendedCommands;
use crate::system::process::Capture;

/// The names of the presenters: those without a file, and the kinds of reports.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ["terminal", "annotations"].into_iter().chain(ReportKind::all().map(ReportKind::name))
}

/// The names of those whose report is not text.
pub(crate) const BINARY: [&str; 2] = ["pprof", "memory-viz"];

/// Passes the same events to the presenter with this name, and writes its report, if it has one.
#[cfg(test)]
pub(crate) fn present(
    name: &str,
    replay: impl FnOnce(&mut dyn Presenter) -> Tally,
) -> Option<anyhow::Result<()>> {
    match name {
        "terminal" => shown(&mut terminal(), replay),
        "annotations" => {
            // The tests of this crate can run in GitHub Actions, too.
            let _suspended = SuspendedCommands::begin();
            shown(&mut annotations(), replay)
        }
        name => {
            let kind = ReportKind::all().find(|kind| kind.name() == name);
            let mut report = reports::writer(kind.expect("the name of a presenter"), None);
            shown(report.as_mut(), replay);
            Some(report.write_to(&mut std::io::sink()))
        }
    }
}

/// Passes each event to all presenters, which costs one replay. Returns the reports with the names
/// of their presenters.
pub(crate) fn present_all(
    replay: impl FnOnce(&mut dyn FnMut(&mut dyn FnMut(&mut dyn Presenter))) -> Tally,
) -> Vec<(&'static str, anyhow::Result<Vec<u8>>)> {
    let _suspended = SuspendedCommands::begin();
    let (mut terminal, mut annotations) = (terminal(), annotations());
    let reports = ReportKind::all().map(|kind| (kind.name(), reports::writer(kind, None)));
    let mut reports: Vec<_> = reports.collect();
    let mut notify = |event: &mut dyn FnMut(&mut dyn Presenter)| {
        event(&mut terminal);
        event(&mut annotations);
        reports.iter_mut().for_each(|(_, report)| event(report.as_mut()));
    };
    let tally = replay(&mut notify);
    notify(&mut |to| to.finished(&tally, tally.exit_code(NoTests::Fail)));
    reports.iter().map(|(kind, report)| (*kind, report.text())).collect()
}

/// The reports of a run with this one test, which failed, by the names of their kinds.
#[cfg(test)]
pub(super) fn reports_of(task: &Task, outcome: &TestOutcome) -> impl Fn(&str) -> String {
    let reports = present_all(|notify| {
        notify(&mut |presenter| presenter.test_finished(task, outcome));
        Tally { failed: 1, ..Tally::default() }
    });
    move |kind| {
        let (_, report) = reports.iter().find(|(name, _)| *name == kind).expect("a kind of report");
        String::from_utf8(report.as_ref().expect("a report").clone()).expect("text")
    }
}

#[cfg(test)]
fn shown(
    presenter: &mut dyn Presenter,
    replay: impl FnOnce(&mut dyn Presenter) -> Tally,
) -> Option<anyhow::Result<()>> {
    let tally = replay(presenter);
    presenter.finished(&tally, tally.exit_code(NoTests::Fail));
    None
}

pub(super) fn annotations() -> GithubAnnotations {
    GithubAnnotations::new(Roots::new(Path::new("/w"), None))
}

pub(super) fn terminal() -> Terminal {
    let reporting = ReportingOptions {
        open: false,
        editor: None,
        format: Format::Human,
        verbosity: Verbosity::Verbose,
        reports: Vec::new(),
        annotations: Annotations::None,
    };
    let report_context = ReportContext {
        reporting: &reporting,
        pending: Pending::In(Path::new("/w/pending").to_owned()),
        roots: Roots::new(Path::new("/w"), None),
        // A bar would draw from a second thread.
        capture: Capture::Shown,
        no_tests: NoTests::Fail,
        filters: &[],
        is_replay: false,
    };
    Terminal::new(&report_context, 2)
}
