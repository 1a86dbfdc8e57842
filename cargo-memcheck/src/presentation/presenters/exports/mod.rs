//! The reports for people and for the tools of other ecosystems. A build without the feature
//! `exports` has those of the gate alone, JUnit and JSON.

mod badge;
mod bencher;
mod csv;
pub(super) mod flamegraph;
pub(super) mod html;
pub(super) mod markdown;
pub(super) mod memory_viz;
mod page_text;
pub(super) mod plain_page;
mod pprof;
pub(super) mod sarif;
pub(super) mod trace;

use std::path::Path;
use std::process::Command;

use memcheck_core::judgement::location::Roots;

use self::badge::Badge;
use self::bencher::Bencher;
use self::csv::Csv;
use self::flamegraph::FlameGraph;
use self::html::Html;
use self::markdown::Markdown;
use self::pprof::Pprof;
use self::sarif::Sarif;
use self::trace::ChromeTrace;
use crate::invocation::values::ExportKind;
use crate::presentation::events::ReportWriter;

/// The writer of a kind of export.
pub(super) fn writer(kind: ExportKind, roots: Option<Roots<'_>>) -> Box<dyn ReportWriter> {
    match kind {
        ExportKind::Csv => Box::new(Csv::default()),
        ExportKind::Badge => Box::new(Badge::default()),
        ExportKind::Bencher => Box::new(Bencher::default()),
        ExportKind::Sarif => Box::new(roots.map_or_else(Sarif::default, |roots| Sarif::new(roots))),
        ExportKind::Markdown => Box::new(roots.map_or_else(Markdown::default, Markdown::new)),
        ExportKind::Html => Box::new(roots.map_or_else(Html::default, Html::new)),
        ExportKind::FlameGraph => Box::new(FlameGraph::default()),
        ExportKind::Trace => Box::new(ChromeTrace::default()),
        ExportKind::Pprof => Box::new(Pprof::default()),
        ExportKind::MemoryViz => Box::new(memory_viz::Pickle::default()),
        ExportKind::MemoryVizJson => Box::new(memory_viz::Json::default()),
    }
}

/// Shows a page in the program that `BROWSER` names, as `cargo doc --open` does, or in the default one
/// of the desktop.
pub(super) fn open_page(page: &Path) -> Result<(), String> {
    let browser = std::env::var_os("BROWSER").unwrap_or_else(|| "xdg-open".into());
    let status = Command::new(browser).arg(page).status().map_err(|error| error.to_string())?;
    status.success().then_some(()).ok_or_else(|| status.to_string())
}
