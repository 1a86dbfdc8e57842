//! The worktree of a revision.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{RevisionError, git, resolve};
use crate::system::error::Failure;
use crate::system::temporary::NamedFolder;

const LOCK_FILE: &str = "Cargo.lock";

/// A worktree, which is removed at the end, also by a signal.
#[derive(Debug)]
pub(crate) struct Checkout {
    commit: String,
    worktree: NamedFolder,
    /// The folder of the worktree in the repository, with the state of `git bisect`.
    _administration: NamedFolder,
    /// The current folder in the worktree.
    folder: PathBuf,
    /// The manifest that the user named, in the worktree.
    manifest: Option<PathBuf>,
    /// The lock file of the workspace, if the workspace is in the repository.
    lock_file: Option<PathBuf>,
    /// The lock ends with the file.
    _lock: File,
}

impl Checkout {
    /// `own` is the tool's folder in the target directory, and `root` the folder of the workspace.
    /// The worktree is next to the repository, because relative paths of dependencies, and cargo's
    /// configuration in folders above, must mean the same there. Its path does not change, so that
    /// cargo can reuse what it has built.
    pub(crate) fn create(
        revision: &str,
        manifest: Option<&Path>,
        (own, root): (&Path, &Path),
    ) -> Result<Self, Failure> {
        let unknown = || RevisionError::Unknown(revision.to_owned());
        let commit = resolve(revision).ok_or_else(unknown)?;
        let here = Path::new(".");
        let top = git(here, &["rev-parse", "--show-toplevel"]).map_err(|_| unknown())?;
        let prefix = git(here, &["rev-parse", "--show-prefix"]).map_err(|_| unknown())?;
        let repository = PathBuf::from(top);
        // First, because the worktree of another command that runs must stay.
        let lock = lock(own)?;
        let worktree = place(&repository);
        remove_abandoned(&repository, &worktree);
        let folder = worktree.join(prefix);
        let manifest = manifest.map(|path| {
            // git returns the top folder without links.
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            path.strip_prefix(&repository).map_or(path.clone(), |path| worktree.join(path))
        });
        // Before git creates it, so that a signal removes it from now on.
        let worktree = NamedFolder::new(worktree);
        let path = worktree.path().to_string_lossy().into_owned();
        // `--force`, because git can still have a worktree in its list whose folder was removed.
        let arguments = ["worktree", "add", "--quiet", "--force", "--detach", &path, &commit];
        let refused = |why: String| RevisionError::Checkout(revision.to_owned(), why);
        git(&repository, &arguments).map_err(refused)?;
        let administration = git(worktree.path(), &["rev-parse", "--absolute-git-dir"]);
        let administration = PathBuf::from(administration.map_err(refused)?);
        // A folder with another name is not that of a worktree, and must not be removed.
        if administration.parent().and_then(Path::file_name) != Some("worktrees".as_ref()) {
            return Err(refused("git has created no worktree".to_owned()).into());
        }
        let administration = NamedFolder::new(administration);
        if !folder.is_dir() {
            return Err(refused("the current folder does not exist there".to_owned()).into());
        }
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let below = root.strip_prefix(&repository).ok();
        let lock_file = below.map(|below| worktree.path().join(below).join(LOCK_FILE));
        if let Some(lock_file) = &lock_file {
            supply_lock_file(&root.join(LOCK_FILE), lock_file, &repository);
        }
        let _administration = administration;
        Ok(Self { commit, worktree, _administration, folder, manifest, lock_file, _lock: lock })
    }

    /// The argument of `run` for the manifest that the user named.
    pub(crate) fn arguments(&self) -> Option<String> {
        self.manifest.as_ref().map(|manifest| format!("--manifest-path={}", manifest.display()))
    }

    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The lock file of the workspace. The file can be missing.
    pub(crate) fn lock_file(&self) -> Result<&Path, RevisionError> {
        self.lock_file.as_deref().ok_or(RevisionError::Outside)
    }

    /// The top folder.
    pub(crate) fn worktree(&self) -> &Path {
        self.worktree.path()
    }
}

fn place(repository: &Path) -> PathBuf {
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let parent = repository.parent().unwrap_or(repository);
    parent.join(format!(".{name}-memcheck-base"))
}

/// Removes the worktree of a command that was killed. There is none in most cases, which is an
/// error of git.
fn remove_abandoned(repository: &Path, worktree: &Path) {
    let path = worktree.to_string_lossy();
    // The second `--force` is for a worktree that is locked.
    let _ = git(repository, &["worktree", "remove", "--force", "--force", &path]);
    let _ = fs::remove_dir_all(worktree);
}

/// A lock file that the repository ignores belongs to every revision, because cargo would resolve
/// other versions of the dependencies there than in the workspace.
fn supply_lock_file(from: &Path, to: &Path, repository: &Path) {
    let is_ignored = || git(repository, &["check-ignore", &from.to_string_lossy()]).is_ok();
    if !to.exists() && from.exists() && is_ignored() {
        // Without it cargo resolves the dependencies again.
        let _ = fs::copy(from, to);
    }
}

fn lock(own: &Path) -> Result<File, Failure> {
    fs::create_dir_all(own).context("creating the folder of the lock")?;
    let lock = File::create(own.join("compare.lock")).context("creating the lock")?;
    match lock.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(RevisionError::Locked.into()),
        // A file system without locks.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(lock),
    }
}
