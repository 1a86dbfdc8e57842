//! The path of a pending snapshot that the command itself writes, and functions to write and remove
//! it. insta writes the snapshots of single tests in the test process.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use memcheck_core::judgement::location;

use crate::system::files;

/// insta uses this path too.
pub(crate) fn path_next_to(snapshot: &Path) -> PathBuf {
    snapshot.with_extension("snap.new")
}

/// A folder that mirrors the workspace at `root`. `None` for a snapshot outside the workspace.
pub(crate) fn below(folder: &Path, snapshot: &Path, root: &Path) -> Option<PathBuf> {
    let rest = snapshot.strip_prefix(root).ok()?;
    let is_straight = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_straight.then(|| path_next_to(&folder.join(rest)))
}

/// Waits until no test process writes a pending snapshot in the folder of this one, because insta
/// writes in place. `None` on a file system without locks.
pub(crate) fn lock(snapshot: &Path) -> Option<File> {
    let folder = File::open(location::locked(snapshot)?).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

pub(crate) fn write(pending: &Path, text: &str) -> io::Result<()> {
    files::replace(pending, text.as_bytes())
}

pub(crate) fn remove(pending: &Path) -> io::Result<()> {
    files::remove(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_snapshot_is_next_to_its_baseline_or_in_a_mirror_of_the_workspace() {
        let snapshot = Path::new("/ws/app/snapshots/a@cpu.snap");
        assert_eq!(path_next_to(snapshot), Path::new("/ws/app/snapshots/a@cpu.snap.new"));
        let below = |path: &str| below(Path::new("/p"), Path::new(path), Path::new("/ws"));
        let mirrored = below("/ws/app/snapshots/a@cpu.snap");
        assert_eq!(mirrored, Some("/p/app/snapshots/a@cpu.snap.new".into()));
        for outside in ["/elsewhere/a@cpu.snap", "/ws/../a@cpu.snap", "a@cpu.snap"] {
            assert_eq!(below(outside), None, "{outside}");
        }
    }

    #[test]
    fn a_pending_file_is_written_atomically_replaced_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let pending = folder.path().join("app/snapshots/a@cpu.snap.new");
        remove(&pending).unwrap();
        for text in ["a longer text", "short"] {
            write(&pending, text).unwrap();
            assert_eq!(std::fs::read_to_string(&pending).unwrap(), text);
        }
        let path_next_to = std::fs::read_dir(pending.parent().unwrap()).unwrap();
        assert_eq!(path_next_to.count(), 1, "nothing half written is left");
        remove(&pending).unwrap();
        assert!(!pending.exists());
    }
}
