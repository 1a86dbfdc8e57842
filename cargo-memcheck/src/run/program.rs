//! A program in place of a test: started as it is, and asked for a report at
//! its end.

use std::path::PathBuf;

use anyhow::Context;
use memcheck_core::protocol::{ProgramJob, VERSION};
use memcheck_core::variables;

use super::process::{self, End, Watch};
use super::{NVML_VARIABLE, Outcome, Runner, Task, judge};
use crate::devices::Kind;
use crate::launcher::Launcher;
use crate::options::Capture;

impl Runner<'_> {
    /// Runs a program with these arguments; `None` where it was interrupted. Its
    /// output is shown as it comes, on stderr. `folder` is where it is started.
    pub(crate) fn program(
        &self,
        task: &Task,
        arguments: &[String],
        folder: Option<&PathBuf>,
    ) -> anyhow::Result<Option<Outcome>> {
        let files = self.folder()?;
        let report = files.path().join("report.json");
        let job = ProgramJob {
            version: VERSION,
            program: task.entry.name.clone(),
            package: task.package.clone(),
            report: report.clone(),
            device: task.leg.device.clone(),
            limits: task.limits.clone(),
            workspace: self.workspace_root.to_owned(),
            candle: task.candle.clone(),
        };
        let threads = variables::RAYON_NUM_THREADS.name;
        let launcher = &self.options.scheduling.launcher;
        let mut command = launcher.command(&task.binary.path);
        command
            .args(arguments)
            .envs(task.binary.environment.iter().map(|(name, value)| (name, value)))
            .env(threads, &self.options.rayon_threads)
            .env_remove(variables::LIST)
            .env_remove(variables::JOB)
            .env(variables::PROGRAM, serde_json::to_string(&job)?);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        if task.leg.kind == Kind::Sim
            && let Some(nvml) = &self.nvml
        {
            command.env(NVML_VARIABLE, nvml);
        }
        let watch = Watch {
            kind: match launcher {
                Launcher::None => process::Kind::Own,
                Launcher::Command(_) => process::Kind::SilentLauncher,
            },
            timeout: task.limits.timeout.value,
            capture: Capture::Shown,
            interrupt: &self.interrupt,
        };
        let ended = process::run(command, watch, |_| {})
            .with_context(|| format!("{}: {}", task.binary.id, task.binary.path.display()))?;
        let Some(end) = ended.end else { return Ok(None) };
        let written = judge::Written::read(&report)?;
        let ended_well = matches!(end, End::Exited(status) if status.success());
        let unheard = ended_well && written == judge::Written::Nothing;
        let mut judged = judge::judge(&end, written, task, &self.options.levels);
        if unheard && let Some(finding) = judged.verdict.findings.first_mut() {
            finding.hint = Some(UNHEARD.to_owned());
        }
        Ok(Some(judged.outcome(ended)))
    }
}

const UNHEARD: &str = "a program leaves a record where it links memcheck-runtime (`use \
    memcheck_runtime as _;`) and ends by returning from `main` or by `std::process::exit`";
