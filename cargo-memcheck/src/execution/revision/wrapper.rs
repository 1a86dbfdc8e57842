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

use crate::build::workspace::{configuration_files, program};
use crate::system::{files, shell};

pub(super) const VARIABLE: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Writes the wrapper into the tool's folder in the target directory, for a run with `arguments` in
/// `folder`.
pub(super) fn prepare(own: &Path, folder: &Path, arguments: &[String]) -> anyhow::Result<PathBuf> {
    let path = own.join("rustc-of-revisions");
    let before = users(folder, arguments);
    files::replace_if_different(&path, script(before.as_deref()).as_bytes())
        .and_then(|_| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The wrapper that the user has set: by a variable, a flag or a file, in cargo's order.
fn users(folder: &Path, arguments: &[String]) -> Option<String> {
    const KEY: &str = "rustc-workspace-wrapper";
    let variables = [VARIABLE, "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER"];
    let variable = variables.into_iter().find_map(|name| std::env::var(name).ok());
    let flags = arguments.iter().enumerate().filter_map(|(at, argument)| match argument.as_str() {
        "--config" => arguments.get(at + 1).cloned(),
        _ => argument.strip_prefix("--config=").map(str::to_owned),
    });
    let flags: Vec<String> = flags.collect();
    let mut files = configuration_files(folder, folder, &flags);
    // The last flag comes first.
    let count = flags.len().min(files.len());
    files.rotate_right(count);
    let of_file = || {
        let file = files.iter().find(|file| file.of_build(KEY).is_some())?;
        let wrapper = program(file.of_build(KEY)?.as_ref(), &file.base);
        Some(wrapper.to_string_lossy().into_owned())
    };
    variable.or_else(of_file).filter(|wrapper| !wrapper.is_empty())
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
    fn a_wrapper_of_the_configuration_or_of_a_flag_is_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at(".cargo")).unwrap();
        let text = "[build]\nrustc-workspace-wrapper = \"tools/clippy\"\n";
        fs::write(at(".cargo/config.toml"), text).unwrap();
        let of = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            users(folder.path(), &arguments)
        };
        let in_file = at("tools/clippy").display().to_string();
        assert_eq!(of(&["run", "--device", "cpu"]), Some(in_file));
        let flag = "build.rustc-workspace-wrapper='/opt/other'";
        assert_eq!(of(&["run", "--config", flag]).as_deref(), Some("/opt/other"));
        assert_eq!(of(&["run", &format!("--config={flag}")]).as_deref(), Some("/opt/other"));
    }

    #[test]
    fn the_wrapper_is_executable() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let path = prepare(folder.path(), folder.path(), &[]).unwrap();
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        }
    }
}
