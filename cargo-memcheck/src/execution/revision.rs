//! Runs the tests of another revision: in a worktree next to the workspace, with its target
//! directory, so that the dependencies are compiled once.
//!
//! Cargo tells packages of a workspace apart by their paths below its root, and sees changes by the
//! times of files. In a shared target directory it would therefore take the executables of the
//! worktree for those of the workspace, whose sources are older. A setting of the profile that has
//! no influence on memory gives the packages of the worktree other hashes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use memcheck_core::wire::exit;

use crate::build::workspace::Workspace;
use crate::invocation::values::CargoOptions;
use crate::system::error::{CommandError, Failure};
use crate::system::process::{self, INTERRUPTED, Interrupt, Membership, Short, Supervised, Terms};

/// The interval at which the wait checks for a signal.
const LOOK_UP: Duration = Duration::from_millis(100);
/// For the run to end its tests and to write its results.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub(crate) enum RevisionError {
    #[error("`{0}` is not a revision of this repository")]
    Unknown(String),
    #[error("git cannot check out `{0}`: {1}")]
    Checkout(String, String),
    #[error("another comparison of this workspace is running")]
    Locked,
    #[error("the tests of {0} did not run: exit code {1}")]
    Run(String, u8),
}

impl CommandError for RevisionError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unknown(_) | Self::Locked => exit::USAGE,
            Self::Checkout(..) => exit::INTERNAL,
            Self::Run(_, code) => *code,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Run(..) => "the lines above have the reason; `--verbose` prints more of them",
            Self::Locked => "wait for its end",
            Self::Unknown(_) | Self::Checkout(..) => return None,
        };
        Some(hint.to_owned())
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder);
    let output =
        process::short(&command, Short::TRUSTED).map_err(|error| format!("git: {error}"))?;
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

/// A worktree of a revision, which is removed at the end.
#[derive(Debug)]
pub(crate) struct Checkout {
    commit: String,
    repository: PathBuf,
    worktree: PathBuf,
    /// The current folder in the worktree.
    folder: PathBuf,
    /// The manifest that the user named, in the worktree.
    manifest: Option<PathBuf>,
    /// The lock ends with the file.
    _lock: File,
}

impl Checkout {
    /// `own` is the tool's folder in the target directory. The worktree is next to the repository,
    /// because relative paths of dependencies, and cargo's configuration in folders above, must
    /// mean the same there. Its path does not change, so that cargo can reuse what it has built.
    pub(crate) fn create(
        revision: &str,
        manifest: Option<&Path>,
        own: &Path,
    ) -> Result<Self, Failure> {
        let unknown = || RevisionError::Unknown(revision.to_owned());
        let commit = resolve(revision).ok_or_else(unknown)?;
        let here = Path::new(".");
        let root = git(here, &["rev-parse", "--show-toplevel"]).map_err(|_| unknown())?;
        let prefix = git(here, &["rev-parse", "--show-prefix"]).map_err(|_| unknown())?;
        let repository = PathBuf::from(root);
        let lock = lock(own)?;
        let name = repository.file_name().unwrap_or_default().to_string_lossy();
        let parent = repository.parent().unwrap_or(&repository);
        let worktree = parent.join(format!(".{name}-memcheck-base"));
        let folder = worktree.join(prefix);
        let manifest = manifest.map(|path| {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            path.strip_prefix(&repository).map_or(path.clone(), |path| worktree.join(path))
        });
        let checkout = Self { commit, repository, worktree, folder, manifest, _lock: lock };
        // A comparison that was killed leaves its worktree.
        checkout.remove();
        let path = checkout.worktree.to_string_lossy().into_owned();
        let arguments =
            ["worktree", "add", "--quiet", "--force", "--detach", &path, &checkout.commit];
        let refused = |why: String| RevisionError::Checkout(revision.to_owned(), why);
        git(&checkout.repository, &arguments).map_err(refused)?;
        if !checkout.folder.is_dir() {
            return Err(refused("the current folder does not exist there".to_owned()).into());
        }
        Ok(checkout)
    }

    /// The arguments of `run` for the workspace of the worktree.
    pub(crate) fn arguments(&self, typed: &[String]) -> Result<Vec<String>, Failure> {
        let above = || self.folder.ancestors().map(|folder| folder.join("Cargo.toml"));
        let manifest = self.manifest.clone().or_else(|| above().find(|path| path.is_file()));
        let flags = CargoOptions { manifest_path: manifest, ..CargoOptions::default() };
        let workspace = Workspace::outline(&flags)?;
        let names = workspace.members().into_iter().map(|package| package.name.to_string());
        let mut arguments = distinct(names, &profile(typed));
        if let Some(manifest) = &self.manifest {
            arguments.push(format!("--manifest-path={}", manifest.display()));
        }
        Ok(arguments)
    }

    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn remove(&self) {
        let path = self.worktree.to_string_lossy();
        // There is none in most cases, which is an error of git.
        let _ = git(&self.repository, &["worktree", "remove", "--force", "--force", &path]);
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The profile that the arguments of a run select.
fn profile(typed: &[String]) -> String {
    let mut arguments = typed.iter().take_while(|argument| *argument != "--");
    let mut profile = "dev";
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-r" | "--release" => profile = "release",
            "--profile" => profile = arguments.next().map_or(profile, String::as_str),
            other => profile = other.strip_prefix("--profile=").unwrap_or(profile),
        }
    }
    profile.to_owned()
}

/// The default of the profile `dev` is 256, and that of `release` is 16.
fn distinct(packages: impl Iterator<Item = String>, profile: &str) -> Vec<String> {
    let setting = |name| format!("--config=profile.{profile}.package.{name}.codegen-units=255");
    packages.map(setting).collect()
}

fn lock(own: &Path) -> Result<File, Failure> {
    std::fs::create_dir_all(own).context("creating the folder of the lock")?;
    let lock = File::create(own.join("compare.lock")).context("creating the lock")?;
    match lock.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => Err(RevisionError::Locked.into()),
        // A file system without locks.
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => Ok(lock),
    }
}

/// Runs this command in a folder, and returns its exit code. Its messages go to stderr.
pub(crate) fn run(folder: &Path, arguments: &[String]) -> Result<u8, Failure> {
    let own = std::env::current_exe().context("finding this command")?;
    let mut command = Command::new(own);
    command.args(arguments).current_dir(folder);
    let terms = Terms { membership: Membership::OfCommand, grace: Some(GRACE), input: None };
    let mut child = Supervised::start(&command, terms, |command| {
        command.stdout(Stdio::null());
        Ok(())
    })
    .context("starting the run")?;
    let mut is_ending = false;
    let status = loop {
        if let Some(status) = child.wait(LOOK_UP).context("waiting for the run")? {
            break status;
        }
        // A signal of another sender than the terminal reaches only this process.
        if Interrupt::has_come() && !is_ending {
            child.terminate();
            is_ending = true;
        }
    };
    if Interrupt::has_come() {
        return Ok(INTERRUPTED);
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_a_worktree_get_other_hashes_in_the_profile_of_the_run() {
        let of = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|&word| word.to_owned()).collect();
            distinct(["app".to_owned()].into_iter(), &profile(&typed)).remove(0)
        };
        assert_eq!(of(&[]), "--config=profile.dev.package.app.codegen-units=255");
        for typed in
            [&["--release"][..], &["-r"], &["--profile", "release"], &["--profile=release"]]
        {
            assert!(of(typed).contains("profile.release.package.app"), "{typed:?}");
        }
        assert!(of(&["--", "--release"]).contains("profile.dev."));
    }

    #[test]
    fn a_revision_cannot_be_an_option() {
        assert_eq!(resolve("--help"), None);
        assert_eq!(resolve("no-such-revision-of-this-repository"), None);
    }
}
