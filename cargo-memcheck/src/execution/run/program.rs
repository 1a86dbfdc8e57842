//! Runs a program in place of a test. It is started unchanged and writes a report at its end. A
//! bench does not write a report, because its output is its result.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use memcheck_core::request::variables;
use memcheck_core::runs::capture;
use memcheck_core::runs::plan::RunPlan;
use memcheck_core::runs::process_end::{End, Written};
use memcheck_core::wire::protocol::{ProgramJob, Progress, VERSION, claim};

use super::launched::ExitCode;
use super::{EndedProcess, Runner, device};
use crate::discovery::task::{Task, TestOutcome};
use crate::system::gpus::Slot;
use crate::system::launcher::Launcher;
use crate::system::process::{self, Capture, Watch};

/// The files that a program writes.
#[derive(Debug, Default)]
struct Reports {
    report: Option<PathBuf>,
    live: Option<PathBuf>,
}

impl Runner<'_> {
    /// Prints its output on stderr as it comes or, with a live view, at its end. `None` if it was interrupted.
    pub(crate) fn program(
        &self,
        task: &Task,
        arguments: &[String],
        folder: Option<&PathBuf>,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        let files = self.folder()?;
        let report = files.path().join("report.json");
        let slot = self.slot(task);
        let scheduling = &self.options.scheduling;
        let by_launcher = scheduling.launcher.is_some();
        let progress = files.path().join("progress");
        if by_launcher && scheduling.live {
            // A launcher's progress is read from a file that must exist.
            std::fs::write(&progress, "").with_context(|| progress.display().to_string())?;
        }
        let live = scheduling.live.then(|| match by_launcher {
            true => progress.clone(),
            false => PathBuf::from(process::PROGRESS_PATH),
        });
        let reports = Reports { report: Some(report.clone()), live };
        let mut command = self.program_command(slot.as_ref(), task, reports)?;
        command.args(arguments);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let begun = claim(&report);
        let watch = Watch {
            kind: match scheduling.live && by_launcher {
                true => process::ProcessKind::Launcher(&progress),
                false => self.kind_of_program(Some(&begun)),
            },
            timeout: task.limits.timeout.value,
            // The view would be drawn over the output.
            capture: if self.has_live_area() { Capture::Kept } else { Capture::Shown },
            most: capture::STREAM,
            interrupt: &self.interrupt,
            report: Some(&report),
        };
        if by_launcher {
            let exit_code = ExitCode::OfProgram;
            let launched = self.launch(task, command, watch, (&report, exit_code), on_progress)?;
            return Ok(launched.map(|process| self.of_program(slot.as_ref(), task, process)));
        }
        let ended = process::run(command, watch, on_progress)
            .with_context(|| format!("{}: {}", task.binary.id, task.binary.path().display()))?;
        let Some(end) = ended.end else { return Ok(None) };
        let written = Self::written(&report)?;
        let ended_well = matches!(end, End::Exited(status) if status.success());
        let unheard = ended_well && written == Written::Nothing;
        let mut judged = Self::judge(&end, written, &report, task);
        if unheard && let Some(finding) = &mut judged.finding {
            finding.hint = Some(UNHEARD.to_owned());
        }
        let (output, duration) = (ended.output, ended.duration);
        let process = EndedProcess { ended: judged, output, duration };
        Ok(Some(self.of_program(slot.as_ref(), task, process)))
    }

    fn of_program(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        process: EndedProcess,
    ) -> TestOutcome {
        self.conclude(task, &self.single(slot, task, RunPlan::default(), process))
    }

    /// Its output is not redirected. `None` if it was interrupted.
    pub(crate) fn bench(
        &self,
        task: &Task,
        arguments: &[String],
        criterion_home: &Path,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let slot = self.slot(task);
        let mut command = self.program_command(slot.as_ref(), task, Reports::default())?;
        command.arg("--bench").args(arguments).current_dir(&task.folder);
        if std::env::var_os(CRITERION_HOME).is_none() {
            command.env(CRITERION_HOME, criterion_home);
        }
        let watch = Watch {
            kind: self.kind_of_program(None),
            // A bench decides itself how long it measures.
            timeout: Duration::MAX,
            capture: Capture::None,
            most: capture::STREAM,
            interrupt: &self.interrupt,
            report: None,
        };
        let ended = process::run(command, watch, |_| {})
            .with_context(|| format!("{}: {}", task.binary.id, task.binary.path().display()))?;
        Ok(match ended.end {
            Some(End::Exited(status)) => Some(status),
            Some(End::TimedOut(_)) | None => None,
        })
    }

    fn program_command(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        Reports { report, live }: Reports,
    ) -> anyhow::Result<Command> {
        let job = ProgramJob {
            version: VERSION,
            program: task.name().to_owned(),
            package: task.package.clone(),
            report,
            live,
            device: device(slot, task),
            limits: task.limits.clone(),
            workspace: self.roots.workspace.to_owned(),
            candle: task.candle.clone(),
        };
        let mut command = self.options.scheduling.launcher.start(&task.binary);
        command
            .envs(task.binary.environment.iter().map(|(name, value)| (name, value)))
            .env_remove(variables::LIST)
            .env_remove(variables::JOB)
            .env(variables::PROGRAM, serde_json::to_string(&job)?);
        self.set_threads(&mut command, task);
        self.show_gpus(&mut command, slot, task);
        Ok(command)
    }

    /// True if a terminal shows the live view in place.
    fn has_live_area(&self) -> bool {
        let scheduling = &self.options.scheduling;
        scheduling.live && scheduling.capture == Capture::Kept && console::Term::stderr().is_term()
    }

    fn kind_of_program<'a>(&self, begun: Option<&'a Path>) -> process::ProcessKind<'a> {
        match self.options.scheduling.launcher {
            Launcher::None => process::ProcessKind::Own,
            Launcher::Command(_) => process::ProcessKind::SilentLauncher(begun),
        }
    }
}

const CRITERION_HOME: &str = "CRITERION_HOME";

const UNHEARD: &str = "a program writes a record if it links memcheck-runtime (`use \
                       memcheck_runtime as _;`) and ends by returning from `main` or by \
                       `std::process::exit`";
