//! Accepts or rejects a pending snapshot. The pending file is checked completely before any file
//! changes, and the baseline is replaced by renaming, so that a complete one exists at all times.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use insta::Snapshot;
use memcheck_core::input;
use memcheck_core::judgement::baseline::{Baseline, Figures, Holders, Laws};
use memcheck_core::judgement::snapshot::SnapshotParts;
use memcheck_core::measurement::record::Facts;
use memcheck_core::wire::exit;

use super::SnapshotFile;
use super::find::read;
use crate::system::error::CommandError;
use crate::system::files::Replacement;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("{path} is not a snapshot of a memory test: {why}", path = .0.display(), why = .1)]
    Invalid(PathBuf, String),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    #[error("{path} is not a directory", path = .0.display())]
    NotADirectory(PathBuf),
    #[error("{path} is outside the workspace or its folder of baselines, because of a link to {to}", path = .0.display(), to = .1.display())]
    Linked(PathBuf, PathBuf),
    #[error("{path} does not belong to a package of this workspace", path = .0.display())]
    OtherWorkspace(PathBuf),
}

impl CommandError for SnapshotError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Invalid(..)
            | Self::NotADirectory(_)
            | Self::OtherWorkspace(_)
            | Self::Linked(..) => exit::USAGE,
            Self::Io(..) => exit::INTERNAL,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Invalid(..) => {
                "no snapshot was changed; run the test again, or `cargo memcheck reject` the \
                 snapshot"
            }
            Self::OtherWorkspace(_) => {
                "no snapshot was changed; `-p` restricts the command to one package"
            }
            Self::Linked(..) => "no snapshot was changed; replace the link by a folder",
            Self::NotADirectory(_) | Self::Io(..) => return None,
        };
        Some(hint.to_owned())
    }
}

#[derive(Debug)]
pub(crate) struct CheckedSnapshot {
    snapshot: Snapshot,
    pub(crate) body: Body,
    pub(crate) facts: Facts,
}

#[derive(Debug)]
pub(crate) enum Body {
    Figures(Figures, Holders),
    Laws(Laws),
}

impl Body {
    pub(crate) fn to_yaml(&self) -> String {
        match self {
            Self::Figures(figures, holders) => figures.to_yaml(holders),
            Self::Laws(laws) => laws.to_yaml(),
        }
    }
}

pub(crate) fn check(path: &Path) -> Result<CheckedSnapshot, SnapshotError> {
    let unsound = |why: String| SnapshotError::Invalid(path.to_owned(), why);
    let text = read(path).map_err(|error| match input::is_refusal(&error) {
        true => unsound(error.to_string()),
        false => SnapshotError::Io(path.to_owned(), error),
    })?;
    // insta ends each file with a line end. If it is missing, the last figure may be cut off.
    if !text.ends_with('\n') {
        return Err(unsound("it is cut off".to_owned()));
    }
    // insta's reader has no limits, so that ours must accept the header first.
    let parts = SnapshotParts::of(&text).map_err(|error| unsound(error.to_string()))?;
    let snapshot = Snapshot::from_file(path).map_err(|error| unsound(error.to_string()))?;
    if parts.body.starts_with("laws:") {
        let laws = Laws::from_yaml(parts.body).map_err(unsound)?;
        let facts: Facts = serde_json::from_str(parts.info.as_deref().unwrap_or_default())
            .map_err(|error| unsound(format!("its header is not valid: {error}")))?;
        return Ok(CheckedSnapshot { snapshot, body: Body::Laws(laws), facts });
    }
    match Baseline::from_parts(parts.body, parts.info.as_deref()) {
        Baseline::Found { figures, holders, facts } => {
            Ok(CheckedSnapshot { snapshot, body: Body::Figures(figures, holders), facts })
        }
        Baseline::Corrupt(why) => Err(unsound(why)),
        Baseline::Off | Baseline::Missing => Err(unsound("it has no figures".to_owned())),
    }
}

/// An error if the target of a snapshot is outside these folders once links are followed.
pub(crate) fn check_target(file: &SnapshotFile, folders: &[PathBuf]) -> Result<(), SnapshotError> {
    // A folder of baselines need not exist, and the folders around it do not matter.
    let is_below = |path: &&Path| folders.iter().any(|folder| path.starts_with(folder));
    let mut above = file.target.ancestors().skip(1).take_while(is_below);
    // A link without a target exists here, and has no canonical path.
    let Some(existing) = above.find(|folder| folder.symlink_metadata().is_ok()) else {
        return Ok(());
    };
    let linked = |to| SnapshotError::Linked(file.target.clone(), to);
    let real = existing.canonicalize().map_err(|_| linked(existing.to_owned()))?;
    let is_inside =
        |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
    if folders.iter().any(is_inside) { Ok(()) } else { Err(linked(real)) }
}

pub(crate) fn accept(file: &SnapshotFile, checked: &CheckedSnapshot) -> Result<(), SnapshotError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| SnapshotError::Io(path, error)
    };
    let unfinished = Replacement::new(&file.target).map_err(io(&file.target))?;
    // insta's own function is used because it removes the fields that belong only to pending files.
    checked
        .snapshot
        .save(unfinished.path())
        .map_err(|error| io::Error::other(error.to_string()))
        .and_then(|()| unfinished.commit())
        .map_err(|error| SnapshotError::Io(file.target.clone(), error))?;
    fs::remove_file(&file.path).map_err(io(&file.path))
}

pub(crate) fn reject(file: &SnapshotFile) -> Result<(), SnapshotError> {
    fs::remove_file(&file.path).map_err(|error| SnapshotError::Io(file.path.clone(), error))
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::location::Roots;

    use super::*;

    const PENDING: &str = "---\nsource: tests/mem.rs\nassertion_line: 7\nexpression: figures\ninfo:\n  memcheck: 1\n  candle: 0.11.1\n  profile: debug\n  iterations: 10\n  warmup: 2\n---\nhost:\n  growth: 0\n  peak_allocated: 4096\n  retained: 0\n  setup: 4096\n";

    fn pending(folder: &Path, text: &str) -> SnapshotFile {
        let snapshots = folder.join("snapshots");
        fs::create_dir_all(&snapshots).unwrap();
        fs::write(snapshots.join("mem__a@cpu.snap.new"), text).unwrap();
        super::super::pending(Roots::new(folder, None), folder, Path::new("")).unwrap().remove(0)
    }

    #[test]
    fn an_accepted_snapshot_is_the_pending_one_without_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = pending(folder.path(), PENDING);
        let checked = check(&file.path).unwrap();
        assert_eq!(checked.facts.candle, "0.11.1");
        accept(&file, &checked).unwrap();
        assert!(!file.path.exists());
        let written = fs::read_to_string(&file.target).unwrap();
        assert_eq!(written, PENDING.replace("assertion_line: 7\n", ""));
        assert_eq!(fs::read_dir(folder.path().join("snapshots")).unwrap().count(), 1);
    }

    #[test]
    fn a_snapshot_that_is_not_a_regular_file_or_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a@cpu.snap");
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let refused = |expected: &str| {
            let error = check(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            fs::remove_file(&file).unwrap();
        };
        refused("is not a snapshot of a memory test: it is a character device, and only a regular");
        fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
        refused("is not a snapshot of a memory test: it has 1.00 TiB, and the most is 4.00 MiB");
    }

    #[test]
    fn a_corrupt_pending_snapshot_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in [
            "---\nsource: tests/me".to_owned(),
            PENDING.replace("  peak_allocated: 4096", "  peak_allocated: much"),
            // The last figure is cut off, although the name of every figure is present.
            PENDING[..PENDING.len() - 3].to_owned(),
            PENDING.replace("  memcheck: 1", "  memcheck: 9"),
            PENDING.replace("host:", "<<<<<<< ours\nhost:"),
        ] {
            let file = pending(folder.path(), &text);
            assert!(matches!(check(&file.path), Err(SnapshotError::Invalid(..))), "{text}");
            assert!(file.path.exists());
        }
    }
}
