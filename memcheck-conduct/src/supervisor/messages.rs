//! The messages between the command and a supervisor.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Terms;

/// The program may end itself within its grace.
pub(super) const TERMINATE: u8 = b'T';
/// The program stores the call stack of its body, if it is a test process.
pub(super) const ASK_FOR_STACK: u8 = b'S';
/// The program and its descendants must end now.
pub(super) const KILL: u8 = b'K';

/// The process group of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Membership {
    /// The program leads a process group. All its descendants end with it.
    Own,
    /// The program belongs to the group of the command, so that it can ask on the terminal for a
    /// password. If it ends by itself, the processes that it started may continue. Services that it
    /// started in another session (such as a compiler cache) always continue.
    OfCommand,
}

/// The first line on the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) program: OsString,
    pub(super) name: Option<OsString>,
    pub(super) arguments: Vec<OsString>,
    /// Without a value the variable is removed.
    pub(super) environment: Vec<(OsString, Option<OsString>)>,
    pub(super) folder: Option<OsString>,
    pub(super) membership: Membership,
    pub(super) grace: Option<Duration>,
    pub(super) input: Option<Vec<u8>>,
    pub(super) unread: Option<PathBuf>,
}

impl Assignment {
    pub(super) fn new(command: &Command, terms: Terms<'_>) -> Self {
        let variables = command.get_envs();
        Self {
            program: command.get_program().to_owned(),
            name: terms.name.map(ToOwned::to_owned),
            arguments: command.get_args().map(ToOwned::to_owned).collect(),
            environment: variables
                .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
                .collect(),
            folder: command.get_current_dir().map(|folder| folder.as_os_str().to_owned()),
            membership: terms.membership,
            grace: terms.grace,
            input: terms.input.map(<[u8]>::to_vec),
            unread: terms.unread.map(ToOwned::to_owned),
        }
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let pinned = || pinned_name(Path::new(&self.program)).map(PathBuf::into_os_string);
        if let Some(name) = self.name.clone().or_else(pinned) {
            command.arg0(name);
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}

/// The place of an executable that is started by a descriptor of the command, so that lists of
/// processes show a name.
fn pinned_name(program: &Path) -> Option<PathBuf> {
    let is_descriptor = program.starts_with("/proc") && program.parent()?.ends_with("fd");
    is_descriptor.then(|| std::fs::read_link(program).ok()).flatten()
}

/// A line of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SupervisorAnswer {
    Started,
    /// The error number of the system.
    Failed(i32),
    /// The status as the system encodes it. The supervisor then kills the descendants.
    Ended(i32),
}
