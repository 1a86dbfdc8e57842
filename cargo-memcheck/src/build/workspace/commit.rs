//! The git commit of a workspace.

use std::path::Path;
use std::process::Command;

use crate::system::process::{self, ShortRun};

pub(crate) fn commit(root: &Path) -> Option<String> {
    let mut command = Command::new("git");
    command.args(["rev-parse", "HEAD"]).current_dir(root);
    let output = process::short(&command, ShortRun::TRUSTED).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
