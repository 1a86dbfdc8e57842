//! Starts a test executable for the list of its tests: on this machine, or by the launcher.

use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use memcheck_core::request::variables;
use memcheck_core::runs::process_end::End;

use super::LONGEST;
use crate::system::binary::Binary;
use crate::system::elf::ElfTarget;
use crate::system::launcher::{Launcher, TURN};
use crate::system::libraries::{LibrarySearch, Missing};
use crate::system::process::{self, Capture, Interrupt, ProcessResult, Watch};

/// A loader or a shell could not start the program.
const NOT_STARTED: [i32; 2] = [126, 127];

pub(super) struct ListingAttempt {
    pub(super) ended: std::io::Result<ProcessResult>,
    pub(super) missing: Option<Missing>,
    /// The machine that the executable is for, if it is another one.
    pub(super) foreign: Option<ElfTarget>,
    /// The executable did not start on this machine.
    pub(super) lacks: bool,
    pub(super) patience: Duration,
}

/// `None` after a time-out or an interruption.
pub(super) fn status(ended: &ProcessResult) -> Option<ExitStatus> {
    match ended.end {
        Some(End::Exited(status)) => Some(status),
        _ => None,
    }
}

/// First on this machine, then with the missing libraries in its search path, then with the
/// launcher. If the executable is for another machine, only with the launcher: the C library starts
/// a file that the system refuses as a script of the shell.
pub(super) fn start(
    binary: &mut Binary,
    folder: &Path,
    launcher: &Launcher,
    search: &LibrarySearch,
    limit: Duration,
) -> ListingAttempt {
    let foreign = binary.foreign_target();
    if foreign.is_some() && launcher.is_some() {
        let ended = list(binary, folder, launcher, TURN);
        return ListingAttempt { ended, missing: None, foreign, lacks: true, patience: TURN };
    }
    let mut patience = limit;
    let started = Instant::now();
    let left = || limit.saturating_sub(started.elapsed());
    let mut ended = list(binary, folder, &Launcher::None, left());
    // If the loader refuses an executable, the process has a nonzero exit code and no signal.
    let refused = |ended: &ProcessResult| {
        status(ended).and_then(|status| status.code()).is_some_and(|code| code != 0)
    };
    let mut missing = None;
    if ended.as_ref().is_ok_and(refused) {
        match search.complete(binary, left()) {
            Ok(true) => ended = list(binary, folder, &Launcher::None, left()),
            Ok(false) => {}
            // The machine that the launcher leads to may have them.
            Err(why) => missing = Some(why),
        }
    }
    // A harness that starts here and has no list has none on another machine either.
    let started = |ended: &ProcessResult| {
        status(ended)
            .is_some_and(|status| status.code().is_none_or(|code| !NOT_STARTED.contains(&code)))
    };
    let lacks = missing.is_some() || !ended.as_ref().is_ok_and(started);
    let listed = ended.as_ref().ok().and_then(status).is_some_and(|status| status.success());
    if launcher.is_some() && lacks && !listed {
        patience = TURN;
        ended = list(binary, folder, launcher, patience);
    }
    ListingAttempt { ended, missing, foreign, lacks, patience }
}

fn list(
    binary: &Binary,
    folder: &Path,
    launcher: &Launcher,
    timeout: Duration,
) -> std::io::Result<ProcessResult> {
    let mut command = launcher.start(binary);
    command
        // An executable without memory tests lists its other tests, and runs none.
        .args(["--list", "--format", "terse"])
        .env(variables::LIST, "1")
        .envs(binary.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(folder);
    let kind = match launcher {
        Launcher::None => process::ProcessKind::Own,
        Launcher::Command(_) => process::ProcessKind::SilentLauncher(None),
    };
    let watch = Watch {
        kind,
        timeout,
        capture: Capture::Kept,
        most: LONGEST,
        interrupt: &Interrupt::listen()?,
        report: None,
    };
    process::run(command, watch, |_| {})
}
