//! Remembers that the dependencies of a build with CUDA were resolved. Cargo.lock lacks crates that
//! only a dependency's feature of the command line reaches (cudarc, the simulator), so cargo asks
//! the registry in every build. With `--offline` it uses the versions on this machine, which are
//! those of the last build.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::leg::DeviceKind;
use crate::build::workspace::Workspace;
use crate::invocation::values::CargoOptions;
use crate::system::files;

#[derive(Debug)]
pub(super) struct Stamp {
    path: PathBuf,
    text: String,
}

impl Stamp {
    /// `None` if Cargo.lock contains all crates, or if the user's flags decide about the network.
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

    pub(super) fn is_unchanged(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }

    /// An error is ignored, because without a stamp the next build resolves the dependencies again.
    pub(super) fn set(&self, resolved: bool) {
        let _ = match resolved {
            true => files::replace(&self.path, self.text.as_bytes()),
            false => files::remove(&self.path),
        };
    }
}
