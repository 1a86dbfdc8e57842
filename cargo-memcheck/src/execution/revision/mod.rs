//! Runs the tests of another revision: in a worktree next to the workspace, with its target
//! directory, so that the dependencies are compiled once.

mod checkout;
mod refusal;
mod run;
mod update;
mod wrapper;

use std::path::Path;
use std::process::Command;

use memcheck_core::wire::exit;

use crate::system::error::CommandError;
use crate::system::process::{self, ShortRun};

pub(crate) use checkout::Checkout;
pub(crate) use run::{RunOutput, bisect_run, run};
pub(crate) use update::{LockUpdate, update};

#[derive(Debug, thiserror::Error)]
pub(crate) enum RevisionError {
    #[error("`{0}` is not a revision of this repository")]
    Unknown(String),
    #[error("git cannot check out `{0}`: {1}")]
    Checkout(String, String),
    #[error("the workspace is not in the repository of the current folder")]
    Outside,
    #[error("another `compare` or `bisect` of this workspace is running")]
    Locked,
    #[error("the tests of {0} did not run: exit code {1}")]
    Run(String, u8),
}

impl CommandError for RevisionError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unknown(_) | Self::Locked | Self::Outside => exit::USAGE,
            Self::Checkout(..) => exit::INTERNAL,
            Self::Run(_, code) => *code,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Run(..) => "the lines above have the reason; `--verbose` prints more of them",
            Self::Locked => "wait for its end",
            Self::Unknown(_) | Self::Checkout(..) | Self::Outside => return None,
        };
        Some(hint.to_owned())
    }
}

/// The command `git`, without the hooks of the repository: they are written for its developer's own
/// checkouts.
pub(crate) fn git_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "core.hooksPath=/dev/null"]).args(arguments).current_dir(folder);
    command
}

/// The stdout of git, or its stderr if it failed.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = process::short(&git_command(folder, arguments), ShortRun::TRUSTED)
        .map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// The commit of a revision in the repository of the current folder.
pub(crate) fn resolve(revision: &str) -> Option<String> {
    let commit = format!("{revision}^{{commit}}");
    // A revision that begins with a hyphen must not be an option.
    let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
    git(Path::new("."), &arguments).ok().filter(|commit| !commit.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_cannot_be_an_option() {
        assert_eq!(resolve("--help"), None);
        assert_eq!(resolve("no-such-revision-of-this-repository"), None);
    }
}
