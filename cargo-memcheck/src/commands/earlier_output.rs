//! The output of earlier runs, which must not be taken for that of this one: a run removes their
//! results, and moves the pending snapshots of another commit. A run that cannot start does the
//! same, as far as it knows the folders.

use std::path::Path;

use memcheck_core::size::counted;

use crate::baselines;
use crate::build::workspace::{Places, commit, pending_of_results};
use crate::discovery::session::Session;
use crate::invocation::cli::RunArgs;
use crate::invocation::options::{Mode, environment};
use crate::invocation::printed::PrintedCommand;
use crate::presentation::presenters::style;
use crate::presentation::results;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

pub(super) fn discard(session: &Session) -> Result<(), Failure> {
    results::discard(&session.results_directory())?;
    if session.options.own_pending {
        let pending = pending_of_results(&session.results_directory());
        match std::fs::remove_dir_all(&pending) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(anyhow::Error::from(error)
                    .context(pending.display().to_string())
                    .into());
            }
            _ => {}
        }
    } else if let Some(pending) = session.pending_directory() {
        set_aside(&pending, session.commit().as_deref());
    }
    Ok(())
}

pub(super) fn discard_without_session(args: &RunArgs) {
    let (pending, commit) = if args.archive.archive_file.is_some() {
        let here = || Places::here(&args.cargo).results_directory();
        (pending_of_results(&args.results.clone().unwrap_or_else(here)), None)
    } else if Mode::is_ci(&args.ci, &environment) {
        (Places::guess(&args.cargo).pending_directory(), commit(Path::new(".")))
    } else {
        return;
    };
    if pending.is_dir() {
        set_aside(&pending, commit.as_deref());
    }
}

pub(super) fn set_aside(pending: &Path, commit: Option<&str>) {
    match baselines::set_aside(pending, commit) {
        Ok(None) => {}
        Ok(Some(baselines::SetAside { snapshots, to })) => eprint_line!(
            "note: {} of another commit moved to {}; {} shows them",
            counted(snapshots as u64, "pending snapshot", "pending snapshots"),
            to.display(),
            PrintedCommand::ReviewEarlierSnapshots.quoted([to.to_string_lossy()])
        ),
        Err(error) => eprint_line!(
            "{} {} can have pending snapshots of another commit: {error}",
            style::warning("warning:"),
            pending.display()
        ),
    }
}
