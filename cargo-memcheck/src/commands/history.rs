//! `cargo memcheck history TEST`: plots a figure of a test over the runs of a history.

use std::path::PathBuf;

use memcheck_core::runs::history::{HistoryError, parse, series};
use memcheck_core::wire::exit;

use crate::build::workspace::Places;
use crate::invocation::cli::HistoryArgs;
use crate::invocation::suggestion::nearest;
use crate::invocation::values::Format;
use crate::presentation::presenters::history as presenter;
use crate::system::error::{CommandError, Failure};

#[derive(Debug, thiserror::Error)]
enum HistoryFailure {
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Unreadable(PathBuf, std::io::Error),
    #[error("{path} is not a history: {error}", path = .0.display(), error = .1)]
    Damaged(PathBuf, HistoryError),
    #[error("the history has no test `{0}` with the figure `{1}`")]
    Nothing(String, String, Option<String>),
}

impl CommandError for HistoryFailure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(..) | Self::Damaged(..) => exit::USAGE,
            Self::Nothing(..) => exit::NO_TESTS,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable(path, _) => Some(format!(
                "`cargo memcheck --history {}` appends the figures of a run",
                path.display()
            )),
            Self::Damaged(..) => Some("remove this line, or restore the file".to_owned()),
            Self::Nothing(_, _, near) => {
                near.as_ref().map(|near| format!("did you mean `{near}`?"))
            }
        }
    }
}

pub(super) fn history(args: &HistoryArgs) -> Result<u8, Failure> {
    let file = match &args.history {
        Some(file) => file.clone(),
        None => Places::find(&args.workspace.cargo())?.own_directory().join("history.jsonl"),
    };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| HistoryFailure::Unreadable(file.clone(), error))?;
    let entries = parse(&text).map_err(|error| HistoryFailure::Damaged(file, error))?;
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
    Ok(exit::OK)
}
