//! Pending snapshots of figures and laws: their paths, and the lock under which they are written and
//! read. insta writes those of figures in the test process, and the command those of laws.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The path of the pending snapshot of `snapshot`: next to it, as insta has it, or in a folder that
/// mirrors the workspace: `mirror` is this folder and the root of the workspace. `None` for a
/// snapshot outside the workspace, which the folder does not mirror.
pub fn path(snapshot: &Path, mirror: Option<(&Path, &Path)>) -> Option<PathBuf> {
    let Some((folder, root)) = mirror else { return Some(snapshot.with_extension("snap.new")) };
    let rest = snapshot.strip_prefix(root).ok()?;
    let is_straight = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_straight.then(|| folder.join(rest).with_extension("snap.new"))
}

/// Waits until no other process writes or reads a pending snapshot in the folder of this one,
/// because insta writes in place. The lock is on the folder of the test's source file, which always
/// exists. `None` on a file system without locks.
pub fn lock(snapshot: &Path) -> Option<File> {
    let folder = File::open(snapshot.parent()?.parent()?).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// Removes a pending snapshot. It is not an error if there is none.
///
/// # Errors
/// If the file exists and cannot be removed.
pub fn remove(pending: &Path) -> io::Result<()> {
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
        assert_eq!(path(snapshot, None), Some("/ws/app/snapshots/a@cpu.snap.new".into()));
        let below =
            |snapshot: &str| path(Path::new(snapshot), Some((Path::new("/p"), Path::new("/ws"))));
        let mirrored = below("/ws/app/snapshots/a@cpu.snap");
        assert_eq!(mirrored, Some("/p/app/snapshots/a@cpu.snap.new".into()));
        for outside in ["/elsewhere/a@cpu.snap", "/ws/../a@cpu.snap", "a@cpu.snap"] {
            assert_eq!(below(outside), None, "{outside}");
        }
    }

    #[test]
    fn a_pending_snapshot_that_does_not_exist_is_removed() {
        remove(Path::new("/no/such/folder/a@cpu.snap.new")).unwrap();
        remove(Path::new("/")).unwrap_err();
    }
}
