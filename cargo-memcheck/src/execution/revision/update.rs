//! Updates dependencies in the lock file of a worktree. Cargo decides which versions fit together.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use memcheck_core::input;

use super::Checkout;
use super::refusal::{UpdateError, requirements, requiring};
use crate::build::workspace::cargo;
use crate::execution::lock_file::{LockedPackages, LockedVersion, PackageChange, changes, without};
use crate::invocation::values::DependencyUpdate;
use crate::system::error::Failure;
use crate::system::files;
use crate::system::process::{self, ShortRun};

/// The lock files of both sides, and their differences.
#[derive(Debug)]
pub(crate) struct LockUpdate {
    before: String,
    after: String,
    pub(crate) changes: Vec<PackageChange>,
}

impl LockUpdate {
    /// Writes the lock file without the updates.
    pub(crate) fn revert(&self, checkout: &Checkout) -> Result<(), Failure> {
        write(checkout.lock_file()?, &self.before)
    }

    pub(crate) fn apply(&self, checkout: &Checkout) -> Result<(), Failure> {
        write(checkout.lock_file()?, &self.after)
    }
}

/// The workspace in the worktree, and the way in which cargo is called there.
struct Updater<'a> {
    checkout: &'a Checkout,
    file: &'a Path,
    /// `--offline` and `--config`.
    flags: &'a [String],
}

/// Determines the lock file with the updates. Exact versions come last, because they count more.
pub(crate) fn update(
    checkout: &Checkout,
    requests: &[DependencyUpdate],
    flags: &[String],
) -> Result<LockUpdate, Failure> {
    let updater = Updater { checkout, file: checkout.lock_file()?, flags };
    // A lock file can be incomplete or missing.
    updater.cargo_update(&["--workspace"])?.map_err(UpdateError::Incomplete)?;
    let before = updater.read()?;
    let locked = read_locked(&before)?;
    let exact = |request: &&DependencyUpdate| request.version.is_some();
    let (exact, latest): (Vec<_>, Vec<_>) = requests.iter().partition(exact);
    updater.update_to_latest(&latest, &locked)?;
    for request in &exact {
        updater.update_to(request)?;
    }
    let after = updater.read()?;
    let locked = read_locked(&after)?;
    for request in exact {
        check_applied(request, &locked)?;
    }
    let changes = changes(&before, &after).map_err(UpdateError::Unreadable)?;
    Ok(LockUpdate { before, after, changes })
}

impl Updater<'_> {
    /// Updates packages together, because one can need another. Cargo changes other packages only if
    /// these need it.
    fn update_to_latest(
        &self,
        requests: &[&DependencyUpdate],
        locked: &LockedPackages,
    ) -> Result<(), Failure> {
        let mut specs = Vec::new();
        for request in requests {
            let versions = locked.versions(&request.name);
            let versions = versions.map_err(|why| UpdateError::of(request, why, locked))?;
            specs.extend(versions.iter().map(|version| spec(&request.name, version)));
        }
        let Some(first) = requests.first() else { return Ok(()) };
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        self.cargo_update(&specs)?.map_err(|why| self.refused(first, why))?;
        Ok(())
    }

    /// Sets a package to its version. Cargo changes the packages along that the version needs. Those
    /// that need another version of the package are chosen again here.
    fn update_to(&self, request: &DependencyUpdate) -> Result<(), Failure> {
        let wanted = request.version.as_deref().unwrap_or_default();
        let before = self.read()?;
        let locked = read_locked(&before)?;
        let version = locked.replaced(&request.name, wanted);
        let version = version.map_err(|why| UpdateError::of(request, why, &locked))?;
        if is_same(version, wanted) {
            return Ok(());
        }
        let spec = spec(&request.name, version);
        let mut freed: BTreeSet<LockedVersion> = BTreeSet::new();
        while let Err(why) = self.cargo_update(&[&spec, "--precise", wanted])? {
            let count = freed.len();
            let dependents = requiring(&why).into_iter();
            freed.extend(dependents.filter(|package| locked.is_of_registry(package)));
            if freed.len() == count {
                return Err(self.refused(request, why).into());
            }
            let text = without(&before, &freed).map_err(UpdateError::Unreadable)?;
            write(self.file, &text)?;
        }
        Ok(())
    }

    fn refused(&self, request: &DependencyUpdate, why: String) -> UpdateError {
        let required = requirements(request, &self.manifest(), self.flags);
        UpdateError::Refused { update: request.to_string(), why, required }
    }

    fn manifest(&self) -> std::path::PathBuf {
        self.file.with_file_name("Cargo.toml")
    }

    /// Runs `cargo update`. The inner error is its message.
    fn cargo_update(&self, arguments: &[&str]) -> Result<Result<(), String>, Failure> {
        let mut command = Command::new(cargo());
        command
            .args(["update", "--color", "never", "--manifest-path"])
            .arg(self.manifest())
            .args(self.flags)
            .args(arguments)
            .current_dir(self.checkout.folder());
        let output = match process::short(&command, ShortRun::TRUSTED) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                return Err(UpdateError::Interrupted.into());
            }
            output => output.context("starting cargo")?,
        };
        if output.status.success() {
            return Ok(Ok(()));
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let lines = stderr.lines().skip_while(|line| !line.starts_with("error"));
        let message = lines.collect::<Vec<_>>().join("\n");
        Ok(Err(if message.is_empty() { stderr.into_owned() } else { message }.trim().to_owned()))
    }

    fn read(&self) -> Result<String, Failure> {
        let text = input::read_text(self.file, input::LOCK_FILE);
        Ok(text.context("reading the lock file of the worktree")?)
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    Ok(files::replace(file, text.as_bytes()).context("writing the lock file of the worktree")?)
}

/// The form in which cargo takes one of several versions.
fn spec(name: &str, version: &str) -> String {
    format!("{name}@{version}")
}

fn read_locked(text: &str) -> Result<LockedPackages, UpdateError> {
    LockedPackages::read(text).map_err(UpdateError::Unreadable)
}

/// Another update can have changed the package again, and cargo ignores a version of a package in a
/// vendored folder.
fn check_applied(request: &DependencyUpdate, locked: &LockedPackages) -> Result<(), UpdateError> {
    // A package that is not needed any more does not matter.
    let versions = locked.versions(&request.name).unwrap_or_default();
    let wanted = request.version.as_deref().unwrap_or_default();
    let is_applied = versions.is_empty() || versions.iter().any(|it| is_same(it, wanted));
    if is_applied || locked.is_of_git(&request.name) {
        return Ok(());
    }
    let (update, name) = (request.to_string(), request.name.clone());
    Err(UpdateError::NotApplied { update, name, versions: versions.join(" and ") })
}

/// A version can be typed without its build metadata.
fn is_same(locked: &str, wanted: &str) -> bool {
    locked == wanted || locked.split('+').next() == Some(wanted)
}
