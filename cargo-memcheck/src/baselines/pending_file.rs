//! The path of a pending snapshot that the command itself writes, and functions to write and remove
//! it. insta writes the snapshots of single tests in the test process.

use std::io;
use std::path::{Component, Path, PathBuf};

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

/// Renames at the end, so that an error cannot leave a partly written file.
pub(crate) fn write(pending: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = pending.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = pending.with_extension("part");
    std::fs::write(&part, text)?;
    std::fs::rename(part, pending)
}

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
