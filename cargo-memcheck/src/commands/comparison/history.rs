//! `cargo memcheck history TEST`: plots a figure of a test over the runs of a history.

use std::path::PathBuf;

use memcheck_core::wire::exit;

use crate::build::workspace::Places;
use crate::comparison::history::{HistoryError, parse, series};
use crate::invocation::cli::HistoryArgs;
use crate::invocation::printed::PrintedCommand;
use crate::invocation::suggestion::nearest;
use crate::invocation::values::{ExportKind, Format, HistoryPlace, ReportKind};
use crate::presentation::history as history_of_runs;
use crate::presentation::presenters::comparison::history as presenter;
use crate::system::error::{CommandError, Failure};

#[derive(Debug, thiserror::Error)]
enum HistoryFailure {
    #[error("{0}: {1}")]
    Unreadable(HistoryPlace, String),
    #[error("{0} is not a history: {1}")]
    Damaged(HistoryPlace, HistoryError),
    #[error("a history has no `{0}` report: html")]
    Kind(&'static str),
    #[error("the history has no test `{0}` with the figure `{1}`")]
    Nothing(String, String, Option<String>),
}

impl CommandError for HistoryFailure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(..) | Self::Damaged(..) | Self::Kind(_) => exit::USAGE,
            Self::Nothing(..) => exit::NO_TESTS,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable(place, _) => {
                let run = PrintedCommand::AppendToHistory.quoted([place.to_string()]);
                Some(format!("{run} appends the figures of a run"))
            }
            Self::Damaged(HistoryPlace::File(_), _) => {
                Some("remove this line, or restore the file".to_owned())
            }
            Self::Damaged(HistoryPlace::Git, _) => {
                Some("`git log --notes=memcheck` shows the notes".to_owned())
            }
            Self::Kind(_) => None,
            Self::Nothing(_, _, near) => {
                near.as_ref().map(|near| format!("did you mean `{near}`?"))
            }
        }
    }
}

pub(super) fn history(args: &HistoryArgs) -> Result<u8, Failure> {
    if let Some(other) =
        args.report.iter().find(|report| report.kind != ReportKind::Export(ExportKind::Html))
    {
        return Err(HistoryFailure::Kind(other.kind.name()).into());
    }
    let (place, root) = match &args.history {
        Some(HistoryPlace::File(file)) => (HistoryPlace::File(file.clone()), PathBuf::new()),
        of_workspace => {
            let places = Places::find(&args.workspace.cargo())?;
            let file = places.own_directory().join("history.jsonl");
            let place = of_workspace.clone().unwrap_or(HistoryPlace::File(file));
            (place, places.root().to_owned())
        }
    };
    let text = history_of_runs::read(&place, &root)
        .map_err(|error| HistoryFailure::Unreadable(place.clone(), error))?;
    let entries = parse(&text).map_err(|error| HistoryFailure::Damaged(place, error))?;
    let mut found = series(&entries, &args.figure, |id| match args.exact {
        true => id.test == args.test,
        false => id.test.contains(&args.test),
    });
    if found.is_empty() {
        let names = entries.iter().map(|entry| entry.id.test.as_str());
        let near = nearest(&args.test, names).filter(|near| *near != args.test);
        let (test, figure) = (args.test.clone(), args.figure.clone());
        return Err(HistoryFailure::Nothing(test, figure, near.map(str::to_owned)).into());
    }
    for series in &mut found {
        let first = match args.last {
            0 => 0,
            last => series.points.len().saturating_sub(last),
        };
        series.points.drain(..first);
    }
    match args.output.form.message_format {
        Format::Json => presenter::print_json(&found, &args.figure),
        Format::Human => presenter::print(&found, &args.figure),
    }
    presenter::write(&found, &args.figure, &args.report)?;
    Ok(exit::OK)
}
