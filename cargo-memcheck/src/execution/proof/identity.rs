//! The state of everything that a proof depends on: versions, the command itself, the sources of
//! the instrument, and the executable with the planted leaks.

use std::path::Path;
use std::process::Command;

use memcheck_core::measurement::cargo_lock::CANDLE;
use serde::{Deserialize, Serialize};

use super::Versions;
use super::watched::Watched;
use crate::build::workspace::{RUNTIME, Workspace};
use crate::invocation::values::CargoOptions;
use crate::system::process::{self, ShortRun};

/// The crates of the instrument. Those with a path can change without a new version.
const INSTRUMENT: [&str; 8] = [
    RUNTIME,
    "memcheck-core",
    "memcheck-kernels",
    "memcheck-ledger",
    "memcheck-limits",
    "memcheck-macros",
    "memcheck-sim",
    "memcheck-conduct",
];

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(super) versions: Versions,
    command: Watched,
    instrument: Watched,
    executable: Watched,
}

impl Identity {
    /// `executable` has the planted leaks.
    pub(crate) fn of(workspace: &Workspace, cargo: &CargoOptions, executable: &Path) -> Self {
        let mut instrument = Watched::default();
        for package in INSTRUMENT.iter().filter_map(|name| workspace.resolved(name)) {
            // Cargo never changes a package of a registry or a repository.
            if package.source.is_none()
                && let Some(folder) = package.manifest_path.parent()
            {
                instrument.add(package.manifest_path.as_std_path());
                instrument.add_tree(folder.join("src").as_std_path());
            }
        }
        Self {
            versions: Versions::of(workspace, cargo),
            command: Watched::file(&std::env::current_exe().unwrap_or_default()),
            instrument,
            executable: Watched::file(executable),
        }
    }

    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The differences between the state of the proof and `now`, as parts of a sentence.
    pub(super) fn changes(&self, now: &Versions) -> Vec<String> {
        let then = &self.versions;
        let versions = [
            ("memcheck", &then.memcheck, &now.memcheck),
            ("memcheck-runtime", &then.runtime, &now.runtime),
            ("candle", &then.candle, &now.candle),
            ("the compiler", &then.rustc, &now.rustc),
            ("the profile", &then.profile, &now.profile),
        ];
        let mut changes: Vec<String> = versions
            .into_iter()
            .filter(|(_, then, now)| then != now)
            .map(|(name, then, now)| format!("{name} was {then} and is {now}"))
            .collect();
        let files = [
            ("the command has changed", &self.command),
            ("the sources of memcheck's crates have changed", &self.instrument),
            ("the executable with the planted leak has changed", &self.executable),
        ];
        let changed = files.into_iter().filter(|(_, watched)| !watched.is_unchanged());
        changes.extend(changed.map(|(text, _)| text.to_owned()));
        changes
    }
}

impl Versions {
    pub(crate) fn of(workspace: &Workspace, cargo: &CargoOptions) -> Self {
        let resolved = |name: &str| {
            let package = workspace.resolved(name);
            package.map_or_else(|| "none".to_owned(), |package| package.version.to_string())
        };
        let named = cargo.profile.clone();
        Self {
            memcheck: env!("CARGO_PKG_VERSION").to_owned(),
            runtime: resolved(RUNTIME),
            candle: resolved(CANDLE),
            rustc: rustc(),
            profile: named.unwrap_or_else(|| if cargo.release { "release" } else { "dev" }.into()),
        }
    }
}

/// `rustc 1.95.0 (…)`.
fn rustc() -> String {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.arg("--version");
    let text = process::short(&command, ShortRun::TRUSTED).ok().map(|output| output.stdout);
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).trim().to_owned();
    if text.is_empty() { "an unknown compiler".to_owned() } else { text }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::execution::proof) fn identity(command: &Path, executable: &Path) -> Identity {
        Identity {
            versions: Versions { candle: "0.11.0".to_owned(), ..Versions::default() },
            command: Watched::file(command),
            instrument: Watched::default(),
            executable: Watched::file(executable),
        }
    }

    #[test]
    fn each_change_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (command, executable) = (folder.path().join("command"), folder.path().join("planted"));
        for path in [&command, &executable] {
            std::fs::write(path, "1").unwrap();
        }
        let identity = identity(&command, &executable);
        let same = identity.versions.clone();
        assert_eq!(identity.changes(&same), [""; 0]);
        let other = Versions { candle: "0.12.0".to_owned(), ..same.clone() };
        assert_eq!(identity.changes(&other), ["candle was 0.11.0 and is 0.12.0"]);
        std::fs::write(&command, "22").unwrap();
        assert_eq!(identity.changes(&same), ["the command has changed"]);
        std::fs::remove_file(&executable).unwrap();
        let changes = identity.changes(&same);
        assert_eq!(changes[1], "the executable with the planted leak has changed");
    }
}
