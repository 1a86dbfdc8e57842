//! Remembers that the dependencies of a build with CUDA were resolved, so that the next build needs neither the network
//! nor newer versions.
//!
//! Cargo.lock contains all crates that the features of a *workspace member* can reach. It does not contain crates that
//! only a feature of a dependency reaches (cudarc, the simulator), if the command line switches this feature on. Cargo
//! resolves such crates in every build, asks the registry each time, and does not record the result. With `--offline`
//! it uses the versions on this machine, which are those of the last build.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::workspace::Workspace;
use crate::invocation::devices::DeviceKind;
use crate::invocation::values::CargoOptions;

/// A file that marks one resolution.
#[derive(Debug)]
pub(super) struct Stamp {
    path: PathBuf,
    text: String,
}

impl Stamp {
    /// Returns the stamp of a build in `directory`. Returns `None` if Cargo.lock contains all crates, or if the user's
    /// flags decide about the network.
    pub(super) fn of(
        workspace: &Workspace,
        flags: &CargoOptions,
        command: &Command,
        (kind, directory): (DeviceKind, &Path),
    ) -> Option<Self> {
        if kind == DeviceKind::Cpu || flags.offline || flags.frozen {
            return None;
        }
        let lock = fs::read(workspace.root().join("Cargo.lock")).ok()?;
        let mut hasher = DefaultHasher::new();
        lock.hash(&mut hasher);
        command.get_args().collect::<Vec<&OsStr>>().hash(&mut hasher);
        let path = directory.join(".memcheck-resolved");
        Some(Self { path, text: format!("{:016x}", hasher.finish()) })
    }

    /// True if the same dependencies were resolved before.
    pub(super) fn is_unchanged(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }

    /// Writes or removes the stamp. An error is ignored, because without a stamp the next build resolves the
    /// dependencies again.
    pub(super) fn set(&self, resolved: bool) {
        let _ =
            if resolved { fs::write(&self.path, &self.text) } else { fs::remove_file(&self.path) };
    }
}
