//! Runs this command in another folder.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use memcheck_core::wire::exit;

use super::{git_command, wrapper};
use crate::system::error::Failure;
use crate::system::process::{INTERRUPTED, Interrupt, Membership, Supervised, Terms};

/// The interval at which the wait checks for a signal.
const LOOK_UP: Duration = Duration::from_millis(100);
/// For the run to end its tests and to write its results.
const GRACE: Duration = Duration::from_secs(10);

/// The place of the messages of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunOutput<'a> {
    Stderr,
    File(&'a Path),
}

/// Runs this command with `arguments`, and returns its exit code. `own` is the tool's folder in the
/// target directory if the sources in `folder` are those of another revision.
pub(crate) fn run(
    folder: &Path,
    arguments: &[String],
    own: Option<&Path>,
    output: RunOutput<'_>,
) -> Result<u8, Failure> {
    let program = std::env::current_exe().context("finding this command")?;
    let mut command = Command::new(program);
    let (subcommand, arguments) = arguments.split_at(1.min(arguments.len()));
    command.args(subcommand).current_dir(folder);
    if let Some(own) = own {
        command.arg("--revision").env(wrapper::VARIABLE, wrapper::prepare(own, folder, arguments)?);
    }
    command.args(arguments);
    wait(&command, output, Some(GRACE))
}

/// Runs `git bisect run`, which starts this command at each step, and returns the exit code.
pub(crate) fn bisect_run(worktree: &Path, step: &[&str]) -> Result<u8, Failure> {
    let program = std::env::current_exe().context("finding this command")?;
    let program = program.to_string_lossy();
    let arguments = [&["bisect", "run", &program], step].concat();
    // git does not end the step that it has started, so that all of them are killed after a signal.
    wait(&git_command(worktree, &arguments), RunOutput::Stderr, None)
}

/// Runs a program, which ends in time after a signal, and returns its exit code.
fn wait(command: &Command, output: RunOutput<'_>, grace: Option<Duration>) -> Result<u8, Failure> {
    let log = match output {
        RunOutput::File(path) => {
            Some(File::create(path).with_context(|| format!("creating {}", path.display()))?)
        }
        RunOutput::Stderr => None,
    };
    let terms = Terms { membership: Membership::OfCommand, grace, ..Terms::OWN };
    let mut child = Supervised::start(command, terms, |command| {
        // The stdout of this command is for its own result.
        command.stdout(Stdio::null());
        if let Some(log) = log {
            command.stderr(log);
        }
        Ok(())
    })
    .context("starting the run of the revision")?;
    let mut is_ending = false;
    let status = loop {
        if let Some(status) = child.wait(LOOK_UP).context("waiting for the run of the revision")? {
            break status;
        }
        // A signal of another sender than the terminal reaches only this process.
        if Interrupt::has_come() && !is_ending {
            match grace {
                Some(_) => child.terminate(),
                None => child.kill(),
            }
            is_ending = true;
        }
    };
    if Interrupt::has_come() {
        return Ok(INTERRUPTED);
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL))
}
