//! A history in the notes of the repository: each commit has the lines of its runs as a note of
//! `refs/notes/memcheck`, which git pushes and fetches like a branch.

use std::path::Path;

use anyhow::{Context, bail};

use crate::execution::revision::{git, git_command};
use crate::system::process::{self, ShortRun};

const REF: &str = "--ref=memcheck";
const SHOWN: &str = "--notes=memcheck";
/// For a machine, such as one of a CI, on which git has no identity.
const IDENTITY: [&str; 4] = ["-c", "user.name=memcheck", "-c", "user.email=memcheck@localhost"];

/// Adds the lines to the note of `commit`.
pub(super) fn append(root: &Path, commit: &str, lines: &str) -> anyhow::Result<()> {
    let mut arguments: Vec<&str> = Vec::new();
    if git(root, &["var", "GIT_COMMITTER_IDENT"]).is_err() {
        arguments.extend(IDENTITY);
    }
    arguments.extend(["notes", REF, "append", "--file=-", commit]);
    let input = ShortRun { input: Some(lines.as_bytes()), ..ShortRun::TRUSTED };
    let output =
        process::short(&git_command(root, &arguments), input).context("starting `git notes`")?;
    if !output.status.success() {
        bail!("git notes: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The lines of all commits that `HEAD` contains, the oldest first.
pub(super) fn read(root: &Path) -> Result<String, String> {
    // `--topo-order` puts a commit after its parents, even if a clock was wrong.
    git(root, &["log", "--reverse", "--topo-order", SHOWN, "--format=%N"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_each_commit_are_read_in_the_order_of_the_commits() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let run = |arguments: &[&str]| git(root, &[&IDENTITY[..], arguments].concat()).unwrap();
        run(&["init", "--quiet"]);
        let mut commits = Vec::new();
        for name in ["one", "two", "three"] {
            run(&["commit", "--quiet", "--allow-empty", "--message", name]);
            commits.push(run(&["rev-parse", "HEAD"]));
        }
        assert_eq!(read(root).unwrap().trim(), "");
        append(root, &commits[2], "{\"n\":3}\n").unwrap();
        append(root, &commits[0], "{\"n\":1}\n").unwrap();
        append(root, &commits[0], "{\"n\":2}\n").unwrap();
        let text = read(root).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
        assert!(append(root, "0123456789", "{}\n").is_err());
    }
}
