//! Appends the figures of a run to the history of `--history`, and reads it.

mod notes;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use memcheck_core::input;
use memcheck_core::judgement::baseline::Figures;

use crate::comparison::history::{HistoryEntry, VERSION};
use crate::comparison::runs::TestId;
use crate::invocation::options::hash;
use crate::invocation::values::HistoryPlace;
use crate::presentation::presenters::json;
use crate::presentation::results::Test;
use crate::system::files;

/// The state of the sources that the figures belong to.
#[derive(Debug, Clone)]
pub(crate) struct HistoryState {
    pub(crate) commit: Option<String>,
    pub(crate) lock: Option<String>,
    pub(crate) time: String,
}

impl HistoryState {
    pub(crate) fn of(workspace: &Path, commit: Option<String>) -> Self {
        let lock = input::read_text(&workspace.join("Cargo.lock"), input::LOCK_FILE).ok();
        Self {
            commit,
            lock: lock.map(|text| format!("{:016x}", hash(&text))),
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }
}

/// Tests without a complete record have no figures.
fn lines(tests: &[Test], state: &HistoryState) -> String {
    let mut text = String::new();
    for Test { task, outcome, .. } in tests {
        let Some(report) = &outcome.report else { continue };
        let entry = HistoryEntry {
            version: VERSION,
            time: state.time.clone(),
            commit: state.commit.clone(),
            lock: state.lock.clone(),
            id: TestId {
                package: task.package.clone(),
                binary: task.binary.id.clone(),
                test: task.name().to_owned(),
                device: task.leg.name(),
            },
            status: outcome.verdict.status,
            figures: Figures::of(&report.record),
        };
        text.push_str(&json::text(&entry));
        text.push('\n');
    }
    text
}

/// Returns the place and the error if it could not be written.
pub(crate) fn append(
    place: &HistoryPlace,
    root: &Path,
    tests: &[Test],
    state: &HistoryState,
) -> Result<(), (PathBuf, anyhow::Error)> {
    let lines = lines(tests, state);
    let appended = match (place, &state.commit) {
        (HistoryPlace::File(file), _) => {
            files::append(file, lines.as_bytes()).map_err(anyhow::Error::from)
        }
        // An empty note would be a change of the repository.
        (HistoryPlace::Git, _) if lines.is_empty() => Ok(()),
        (HistoryPlace::Git, Some(commit)) => notes::append(root, commit, &lines),
        (HistoryPlace::Git, None) => Err(anyhow::anyhow!("there is no commit to note it at")),
    };
    let error = |error| (PathBuf::from(place.to_string()), error);
    appended.context("appending to the history").map_err(error)
}

/// The lines of a history.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn read(place: &HistoryPlace, root: &Path) -> Result<String, String> {
    match place {
        HistoryPlace::File(file) => {
            input::read_text(file, input::HISTORY).map_err(|why| why.to_string())
        }
        HistoryPlace::Git => notes::read(root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_and_a_history_without_an_end_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("Cargo.lock");
        let hash = || HistoryState::of(folder.path(), None).lock;
        std::fs::write(&lock, "version = 4").unwrap();
        assert!(hash().is_some());
        std::fs::File::create(&lock).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(hash(), None);
        std::fs::remove_file(&lock).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &lock).unwrap();
        assert_eq!(hash(), None);
        let why = read(&HistoryPlace::File(lock), folder.path()).unwrap_err();
        assert!(why.starts_with("it is a character device"), "{why}");
    }
}
