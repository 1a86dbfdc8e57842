//! Passes events to every presenter of a run, for the fuzz targets and for the measurements of
//! scale.

use std::path::Path;

use super::annotations::GithubAnnotations;
use super::bencher::Bencher;
use super::csv::Csv;
use super::flamegraph::FlameGraph;
use super::html::Html;
use super::json::JsonLines;
use super::junit::Junit;
use super::markdown::Markdown;
use super::memory_viz;
use super::pprof::Pprof;
use super::sarif::Sarif;
use super::terminal::Terminal;
use super::trace::Trace;
use crate::invocation::options::{Annotations, Pending, ReportContext, ReportingOptions};
use crate::invocation::values::{Format, NoTests, Verbosity};
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::tally::Tally;
use crate::system::printing::SuspendedCommands;
use crate::system::process::Capture;

/// The names of the presenters, in the order of [`present`].
pub(crate) const NAMES: [&str; 14] = [
    "terminal",
    "annotations",
    "json",
    "junit",
    "csv",
    "bencher",
    "markdown",
    "html",
    "flamegraph",
    "trace",
    "sarif",
    "pprof",
    "memory-viz",
    "memory-viz-json",
];

/// The names of those whose report is not text.
pub(crate) const BINARY: [&str; 2] = ["pprof", "memory-viz"];

/// Passes the same events to the presenter with this name. Returns its report, if it writes one.
pub(crate) fn present(
    name: &str,
    replay: impl FnOnce(&mut dyn Presenter) -> Tally,
) -> Option<anyhow::Result<Vec<u8>>> {
    match name {
        "terminal" => shown(&mut terminal(), replay),
        "annotations" => {
            // The tests of this crate can run in GitHub Actions, too.
            let _suspended = SuspendedCommands::begin();
            shown(&mut GithubAnnotations::new("/w".into()), replay)
        }
        "json" => written(JsonLines::new(Vec::new()), replay),
        "csv" => written(Csv::default(), replay),
        "bencher" => written(Bencher::default(), replay),
        "junit" => written(Junit::default(), replay),
        "markdown" => written(Markdown::default(), replay),
        "html" => written(Html::default(), replay),
        "sarif" => written(Sarif::default(), replay),
        "pprof" => written(Pprof::default(), replay),
        "memory-viz" => written(memory_viz::Pickle::default(), replay),
        "memory-viz-json" => written(memory_viz::Json::default(), replay),
        "flamegraph" => written(FlameGraph::default(), replay),
        _ => written(Trace::default(), replay),
    }
}

fn shown(
    presenter: &mut dyn Presenter,
    replay: impl FnOnce(&mut dyn Presenter) -> Tally,
) -> Option<anyhow::Result<Vec<u8>>> {
    let tally = replay(presenter);
    presenter.finished(&tally, tally.exit_code(NoTests::Fail));
    None
}

fn written(
    mut report: impl ReportWriter,
    replay: impl FnOnce(&mut dyn Presenter) -> Tally,
) -> Option<anyhow::Result<Vec<u8>>> {
    shown(&mut report, replay);
    Some(report.text())
}

fn terminal() -> Terminal {
    let reporting = ReportingOptions {
        format: Format::Human,
        verbosity: Verbosity::Verbose,
        reports: Vec::new(),
        annotations: Annotations::None,
    };
    let report_context = ReportContext {
        reporting: &reporting,
        pending: Pending::In(Path::new("/w/pending").to_owned()),
        // A bar would draw from a second thread.
        capture: Capture::Shown,
        no_tests: NoTests::Fail,
        filters: &[],
    };
    Terminal::new(&report_context, 2)
}
