//! Pending snapshots of an earlier commit, which a cache of CI can restore. Only those of one
//! commit may be in a folder of pending snapshots. Others are moved and not removed, because a
//! person may not have seen them yet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::input;

use super::pending_below;
use crate::system::files;

/// Next to the folder, because the folder is published.
const STAMP: &str = "pending-commit";
const MOVED_TO: &str = "pending-earlier";
const UNKNOWN: &str = "unknown";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SetAside {
    pub(crate) snapshots: usize,
    pub(crate) to: PathBuf,
}

/// Several runs of one commit share the folder, so that their snapshots add up.
pub(crate) fn set_aside(pending: &Path, commit: Option<&str>) -> io::Result<Option<SetAside>> {
    let (stamp, now) = (pending.with_file_name(STAMP), commit.unwrap_or(UNKNOWN));
    let then = input::read_text(&stamp, input::OWN).unwrap_or_else(|_| UNKNOWN.to_owned());
    let then = then.trim();
    let snapshots = match pending.is_dir() {
        true => pending_below(pending, Path::new(""))?.len(),
        false => 0,
    };
    let mut moved = None;
    if then != now && snapshots > 0 {
        let to = unused(&pending.with_file_name(MOVED_TO), then);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        fs::rename(pending, &to)?;
        moved = Some(SetAside { snapshots, to });
    }
    // After the move, so that a command that is killed between the two is followed by another
    // move.
    files::replace_if_different(&stamp, now.as_bytes())?;
    Ok(moved)
}

/// `commit` can be any text, because another program can have changed the file.
fn unused(folder: &Path, commit: &str) -> PathBuf {
    let is_plain = !commit.is_empty() && commit.chars().all(|c| c.is_ascii_alphanumeric());
    // The length of a commit. Another text can be too long for a name.
    let name: String = if is_plain { commit } else { UNKNOWN }.chars().take(40).collect();
    let numbered = (2..).map(|number| folder.join(format!("{name}-{number}")));
    let mut free = std::iter::once(folder.join(&name)).chain(numbered);
    free.find(|path| !path.exists()).unwrap_or_else(|| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(pending: &Path, text: &str) {
        let folder = pending.join("app/snapshots");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a@cpu.snap.new"), text).unwrap();
    }

    #[test]
    fn pending_snapshots_of_another_commit_are_moved_and_not_lost() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("target/memcheck");
        let pending = own.join("pending");
        let moved = |commit| set_aside(&pending, commit).unwrap();
        assert_eq!(moved(Some("abc")), None);
        assert!(!pending.exists(), "an empty folder is not created");
        write(&pending, "1");
        assert_eq!(moved(Some("abc")), None, "two runs of one commit add up");
        for (commit, text, to) in
            [(Some("def"), "1", "abc"), (Some("abc"), "2", "def"), (None, "3", "abc-2")]
        {
            let to = own.join("pending-earlier").join(to);
            assert_eq!(moved(commit), Some(SetAside { snapshots: 1, to: to.clone() }));
            assert!(!pending.exists());
            assert_eq!(fs::read_to_string(to.join("app/snapshots/a@cpu.snap.new")).unwrap(), text);
            write(&pending, &(text.parse::<u32>().unwrap() + 1).to_string());
        }
        assert_eq!(moved(None), None);
    }

    #[test]
    fn snapshots_without_a_known_commit_belong_to_an_earlier_one() {
        let own = tempfile::tempdir().unwrap();
        let pending = own.path().join("pending");
        write(&pending, "1");
        fs::write(own.path().join(STAMP), "../../etc").unwrap();
        let to = set_aside(&pending, Some("abc")).unwrap().unwrap().to;
        assert_eq!(to, own.path().join("pending-earlier/unknown"));
    }
}
