//! Runs the process of a test: makes its job, starts it, and reads its measurement.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::request::variables;
use memcheck_core::runs::capture;
use memcheck_core::wire::protocol::{Follow, Job, Progress, Reach, VERSION};

use super::launched::ExitCode;
use super::{EndedProcess, RunSettings, Runner, device};
use crate::build::leg::DeviceKind;
use crate::discovery::task::Task;
use crate::system::gpus::Slot;
use crate::system::launcher::Launcher;
use crate::system::process::{self, Watch};

struct Files {
    report: PathBuf,
    /// Used only with a launcher, because a process behind a launcher does not inherit the progress
    /// pipe.
    progress: PathBuf,
}

impl Runner<'_> {
    /// `None` if the run was interrupted.
    pub(super) fn run_on(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        setting: RunSettings,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<EndedProcess>> {
        let soak = match setting.plan.reach {
            Reach::Soak(time) => time,
            _ => Duration::ZERO,
        };
        let folder = self.folder()?;
        let of = |name: &str| folder.path().join(name);
        let files = Files { report: of("report.json"), progress: of("progress") };
        let command = self.command(&self.job(slot, task, setting, &files), slot, task)?;
        let mut watch = Watch {
            kind: process::ProcessKind::Own,
            // The limit is for the rest of the test.
            timeout: task.limits.timeout.value.saturating_add(soak),
            capture: self.options.scheduling.capture,
            most: capture::STREAM,
            interrupt: &self.interrupt,
            report: Some(&files.report),
        };
        let Files { report, progress } = &files;
        if self.options.scheduling.launcher.is_some() {
            // Another machine has only the path.
            if let Err(error) = task.binary.check() {
                return Ok(Some(not_started(task, &error)));
            }
            watch.kind = process::ProcessKind::Launcher(progress);
            std::fs::write(progress, "").with_context(|| progress.display().to_string())?;
            return self.launch(task, command, watch, (report, ExitCode::Silent), on_progress);
        }
        let ended = match process::run(command, watch, on_progress) {
            Ok(ended) => ended,
            Err(error) => return Ok(Some(not_started(task, &error))),
        };
        let Some(end) = ended.end else { return Ok(None) };
        let judged = Self::judge(&end, Self::written(report)?, report, task);
        let (output, duration) = (ended.output, ended.duration);
        Ok(Some(EndedProcess { ended: judged, output, duration }))
    }

    fn job(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        setting: RunSettings,
        files: &Files,
    ) -> Job {
        let options = self.options;
        Job {
            version: VERSION,
            test: task.name().to_owned(),
            report: files.report.clone(),
            progress: Some(match &options.scheduling.launcher {
                Launcher::None => process::PROGRESS_PATH.into(),
                Launcher::Command(_) => files.progress.clone(),
            }),
            device: device(slot, task),
            limits: task.limits.clone(),
            workspace: self.roots.workspace.to_owned(),
            compiled_in: self.compiled_in.map(std::path::Path::to_owned),
            candle: task.candle.clone(),
            features: task.features.clone(),
            follow: setting.plan.follow,
            reach: setting.plan.reach,
            case: setting.case,
            live: options.scheduling.live,
            own_subscriber: false,
        }
    }

    fn command(&self, job: &Job, slot: Option<&Slot<'_>>, task: &Task) -> anyhow::Result<Command> {
        let scheduling = &self.options.scheduling;
        let ignored = task.subject.test().is_some_and(|entry| entry.ignored);
        let mut command = scheduling.launcher.start(&task.binary);
        command
            .arg(task.name())
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .args(ignored.then_some("--include-ignored"))
            .args(&scheduling.libtest)
            .current_dir(&task.folder)
            .envs(task.binary.environment.iter().map(|(name, value)| (name, value)))
            .envs(&self.environment)
            .env_remove(variables::LIST)
            .env(variables::JOB, serde_json::to_string(job)?);
        if task.leg.kind == DeviceKind::Cuda
            && job.follow != Follow::No
            && let Some(cupti) = self.options.search.cupti()
        {
            command.env(variables::CUPTI, cupti);
        }
        self.set_threads(&mut command, task);
        self.show_gpus(&mut command, slot, task);
        Ok(command)
    }
}

/// The end of a test whose executable is missing, cannot be executed, or is another one by now. The
/// tests of other executables go on.
fn not_started(task: &Task, error: &std::io::Error) -> EndedProcess {
    let path = task.binary.path().display();
    let message = format!("{}: {path} cannot be started: {error}", task.binary.id);
    EndedProcess::unstarted(
        Finding::new(Code::NotMeasured, message)
            .hint("do not build or clean its target directory during a run, and run it again"),
    )
}
