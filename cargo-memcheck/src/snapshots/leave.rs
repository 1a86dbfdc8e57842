//! Where the command itself leaves a pending snapshot, and how it writes and takes
//! back one. Those of single tests insta writes, in the test's process.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Beside its snapshot, as insta does it.
pub(crate) fn beside(snapshot: &Path) -> PathBuf {
    snapshot.with_extension("snap.new")
}

/// Its place in a folder that mirrors the workspace at `root`; none for a snapshot
/// that lies outside of it.
pub(crate) fn below(folder: &Path, snapshot: &Path, root: &Path) -> Option<PathBuf> {
    let rest = snapshot.strip_prefix(root).ok()?;
    let is_straight = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_straight.then(|| beside(&folder.join(rest)))
}

/// Writes one, all of it or nothing.
pub(crate) fn write(pending: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = pending.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = pending.with_extension("part");
    std::fs::write(&part, text)?;
    std::fs::rename(part, pending)
}

/// Takes one back, if it is there.
pub(crate) fn remove(pending: &Path) -> io::Result<()> {
    match std::fs::remove_file(pending) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_snapshot_lies_beside_its_own_or_where_the_workspace_is_mirrored() {
        let snapshot = Path::new("/ws/app/snapshots/a@cpu.snap");
        assert_eq!(beside(snapshot), Path::new("/ws/app/snapshots/a@cpu.snap.new"));
        let below = |path: &str| below(Path::new("/p"), Path::new(path), Path::new("/ws"));
        let mirrored = below("/ws/app/snapshots/a@cpu.snap");
        assert_eq!(mirrored, Some("/p/app/snapshots/a@cpu.snap.new".into()));
        for outside in ["/elsewhere/a@cpu.snap", "/ws/../a@cpu.snap", "a@cpu.snap"] {
            assert_eq!(below(outside), None, "{outside}");
        }
    }

    #[test]
    fn one_is_written_whole_replaced_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let pending = folder.path().join("app/snapshots/a@cpu.snap.new");
        remove(&pending).unwrap();
        for text in ["a longer text", "short"] {
            write(&pending, text).unwrap();
            assert_eq!(std::fs::read_to_string(&pending).unwrap(), text);
        }
        let beside = std::fs::read_dir(pending.parent().unwrap()).unwrap();
        assert_eq!(beside.count(), 1, "nothing half written is left");
        remove(&pending).unwrap();
        assert!(!pending.exists());
    }
}
