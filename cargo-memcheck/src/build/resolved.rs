//! Remembers that a build with CUDA was resolved, so that the next one needs
//! neither the network nor a newer version.
//!
//! Cargo.lock holds what some feature of a *workspace member* can reach. What
//! only a feature of a dependency reaches (cudarc, the simulator), when that
//! feature is switched on from the command line, is not in it: cargo resolves
//! it anew in every build, asks the registry each time, and writes nothing
//! down. Offline it takes what it has, which is what it had last time.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::CargoFlags;
use crate::devices::Kind;
use crate::workspace::Workspace;

/// The mark of one resolution.
#[derive(Debug)]
pub(super) struct Stamp {
    path: PathBuf,
    text: String,
}

impl Stamp {
    /// The stamp of a build in this directory; none where the lock holds everything, or where
    /// the user has a say about the network.
    pub(super) fn of(
        workspace: &Workspace,
        flags: &CargoFlags,
        command: &Command,
        (kind, directory): (Kind, &Path),
    ) -> Option<Self> {
        if kind == Kind::Cpu || flags.offline || flags.frozen {
            return None;
        }
        let lock = fs::read(workspace.root().join("Cargo.lock")).ok()?;
        let mut hasher = DefaultHasher::new();
        lock.hash(&mut hasher);
        command.get_args().collect::<Vec<&OsStr>>().hash(&mut hasher);
        let path = directory.join(".memcheck-resolved");
        Some(Self { path, text: format!("{:016x}", hasher.finish()) })
    }

    /// Whether the very same was resolved before.
    pub(super) fn holds(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }

    /// Keeps the stamp, or takes it away. Without it the next build is as the
    /// first one, so an error here is of no consequence.
    pub(super) fn set(&self, resolved: bool) {
        let _ =
            if resolved { fs::write(&self.path, &self.text) } else { fs::remove_file(&self.path) };
    }
}
