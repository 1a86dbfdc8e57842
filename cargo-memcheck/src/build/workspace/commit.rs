//! The code of a workspace as git knows it: the commit, and what is not committed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use memcheck_core::input;
use sha2::{Digest, Sha256};

use crate::system::process::{self, ShortRun};

pub(crate) fn commit(root: &Path) -> Option<String> {
    let text = String::from_utf8(git(root, &["rev-parse", "HEAD"])?).ok()?;
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// The branch, as CI names it, because CI checks out a commit without one.
pub(crate) fn branch(root: &Path) -> Option<String> {
    let of_ci = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"];
    let named = of_ci.iter().filter_map(|name| std::env::var(name).ok()).find(|it| !it.is_empty());
    named.or_else(|| {
        let text = String::from_utf8(git(root, &["symbolic-ref", "--short", "HEAD"])?).ok()?;
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    })
}

/// A SHA-256 of the files that differ from the commit, and of Rust files that git does not know yet.
/// Not of other new files, because a run writes some, such as pending snapshots. `None` if there are
/// no such files, or no repository.
pub(crate) fn uncommitted(root: &Path) -> Option<String> {
    // From the top, because `ls-files` lists only the current folder.
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    let top = PathBuf::from(OsStr::from_bytes(top.trim_ascii_end()));
    // Without the user's settings: an external diff prints no names, and a rename hides the old
    // name.
    let mut names =
        git(&top, &["diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "HEAD"])?;
    names.extend(git(&top, &["ls-files", "-z", "--others", "--exclude-standard", "*.rs"])?);
    let mut names: Vec<&[u8]> =
        names.split(|byte| *byte == 0).filter(|it| !it.is_empty()).collect();
    names.sort_unstable();
    if names.is_empty() {
        return None;
    }
    let mut hasher = Sha256::new();
    for name in names {
        // A file that was removed has no contents.
        let contents =
            input::read(&top.join(OsStr::from_bytes(name)), input::SOURCE).unwrap_or_default();
        for part in [name, &contents] {
            // With its length, so that no byte can move between a name and the contents.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Some(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The output of git, if it succeeds.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder);
    let output = process::short(&command, ShortRun::TRUSTED).ok()?;
    output.status.success().then_some(output.stdout)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_not_committed_is_identified_by_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!((commit(folder.path()), uncommitted(folder.path())), (None, None));
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            git(folder.path(), &[&identity[..], arguments].concat()).unwrap();
        };
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("lib.rs", "1");
        git(&["init", "--quiet"]);
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", "one"]);
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        let now = || uncommitted(&below);
        assert_eq!(now(), None);
        write("mem.snap.new", "a run writes it");
        assert_eq!(now(), None);
        write("lib.rs", "2");
        let changed = now();
        write("new.rs", "");
        let added = now();
        fs::remove_file(folder.path().join("lib.rs")).unwrap();
        let removed = now();
        assert!([&changed, &added, &removed].iter().all(|it| it.is_some()));
        assert!(changed != added && added != removed && changed != removed);
        write("lib.rs", "1");
        fs::remove_file(folder.path().join("new.rs")).unwrap();
        assert_eq!(now(), None, "as it was committed, with another time");
    }
}
