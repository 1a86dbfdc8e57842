//! A wrapper of rustc that does nothing, with which cargo keeps the executables of a worktree apart
//! from those of the workspace.
//!
//! Cargo tells packages of a workspace apart by their paths below its root, and sees changes by the
//! times of files. In a shared target directory it would therefore take the executables of the
//! worktree for those of the workspace, whose sources are older. The path of a wrapper for the
//! members of a workspace is part of the names of what it builds, and of nothing else
//! (<https://doc.rust-lang.org/cargo/reference/config.html#buildrustc-workspace-wrapper>). If the
//! folder of the workspace has other packages, the revision gets a target directory of its own
//! (`build/workspace/separable`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::system::{files, shell};

pub(super) const VARIABLE: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Writes the wrapper into the tool's folder in the target directory.
pub(super) fn prepare(own: &Path) -> anyhow::Result<PathBuf> {
    let path = own.join("rustc-of-revisions");
    let before = std::env::var(VARIABLE).ok().filter(|wrapper| !wrapper.is_empty());
    files::replace_if_different(&path, script(before.as_deref()).as_bytes())
        .and_then(|_| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// A wrapper that the user has set runs too.
fn script(before: Option<&str>) -> String {
    let before = before.map(|wrapper| format!("{} ", shell::quote(wrapper))).unwrap_or_default();
    format!("#!/bin/sh\nexec {before}\"$@\"\n")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_wrapper_runs_the_compiler_and_the_wrapper_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let printed = |before: Option<&str>| {
            let path = folder.path().join("wrapper");
            fs::write(&path, script(before)).unwrap();
            let output = Command::new("sh").arg(path).args(["echo", "a b"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(printed(None), "a b\n");
        assert_eq!(printed(Some("echo")), "echo a b\n");
    }

    #[test]
    fn the_wrapper_is_executable() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let path = prepare(folder.path()).unwrap();
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        }
    }
}
