//! One test, one child process: what is run, and what came of it.

mod across;
#[cfg(test)]
pub(crate) mod example;
mod judge;
mod launched;
mod program;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use memcheck_core::explain;
use memcheck_core::finding::Code;
use memcheck_core::limits::Limits;
use memcheck_core::protocol::{Entry, Follow, Job, Progress, Report, Status, VERSION, Verdict};
use memcheck_core::variables;
use serde::{Deserialize, Serialize};

use crate::build::Binary;
use crate::devices::{Kind, Leg};
use crate::launcher::Launcher;
use crate::options::{Mode, Options};
use crate::process::{self, Interrupt, Output, Watch};
use crate::session::Session;
use crate::toolchain::NVML_VARIABLE;

pub(crate) use across::{Across, Needs, Other};
use launched::ExitCode;

/// One test on one device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The package.
    pub(crate) package: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The version of candle-core that it is built with, for the baseline's header.
    pub(crate) candle: String,
    /// The executable.
    pub(crate) binary: Binary,
    /// The test.
    pub(crate) entry: Entry,
    /// The device.
    pub(crate) leg: Leg,
    /// The limits in force.
    pub(crate) limits: Limits,
}

/// What one run of a test is to do beyond what is said of the test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    /// Whether every block is followed.
    pub(crate) follow: Follow,
    /// Values of its case in place of its own.
    pub(crate) case: BTreeMap<String, String>,
}

impl From<Follow> for Setting {
    fn from(follow: Follow) -> Self {
        Self { follow, ..Self::default() }
    }
}

/// What came of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The verdict: the test process's own, unless its record is incomplete.
    pub(crate) verdict: Verdict,
    /// What the test process reported, where that can be believed.
    pub(crate) report: Option<Report>,
    /// What it printed.
    pub(crate) output: Output,
    /// How long it took.
    pub(crate) duration: Duration,
    /// What was found across tests.
    #[serde(default)]
    pub(crate) across: Across,
}

impl Outcome {
    /// A test that is not run because `#[ignore]` stands on it.
    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        Self {
            verdict,
            report: None,
            output: Output::default(),
            duration: Duration::ZERO,
            across: Across::default(),
        }
    }

    /// The pending snapshot that the test left.
    pub(crate) fn pending(&self) -> Option<&Path> {
        self.report.as_ref().and_then(|report| report.pending.as_deref())
    }
}

/// What is the same for every test of a run.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    options: &'a Options,
    workspace_root: &'a Path,
    compiled_in: Option<&'a Path>,
    environment: BTreeMap<&'static str, OsString>,
    nvml: Option<PathBuf>,
    reports: tempfile::TempDir,
    interrupt: Interrupt,
}

impl<'a> Runner<'a> {
    /// Prepares the folder for reports. Where pending snapshots go to a folder
    /// of their own, each test replaces its own, so that several runs
    /// in one job add up.
    pub(crate) fn prepare(
        session: &'a Session,
        nvml: Option<PathBuf>,
        interrupt: Interrupt,
    ) -> anyhow::Result<Self> {
        let Session { options, workspace, .. } = session;
        let own = workspace.own_directory();
        std::fs::create_dir_all(&own).with_context(|| own.display().to_string())?;
        let reports = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&own)
            .with_context(|| own.display().to_string())?;
        // insta writes a pending snapshot, and leaves the verdict to us.
        let mut environment: BTreeMap<&'static str, OsString> = BTreeMap::from([
            ("INSTA_UPDATE", "new".into()),
            ("INSTA_FORCE_PASS", "1".into()),
            ("INSTA_OUTPUT", "none".into()),
            ("INSTA_WORKSPACE_ROOT", workspace.root().into()),
            (variables::RAYON_NUM_THREADS.name, (&options.rayon_threads).into()),
        ]);
        if let Some(folder) = session.pending_directory() {
            environment.insert("INSTA_PENDING_DIR", folder.into());
        }
        let (workspace_root, compiled_in) = (workspace.root(), session.compiled_in());
        Ok(Self { options, workspace_root, compiled_in, environment, nvml, reports, interrupt })
    }

    /// Runs one test, and once more where its figures are to be explained;
    /// `None` where it was interrupted.
    pub(crate) fn run(
        &self,
        task: &Task,
        on_progress: impl Fn(Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<Outcome>> {
        let explain = self.options.scheduling.explain;
        let first = self.once(task, explain.follow().into(), on_progress.clone())?;
        let Some(first) = first else { return Ok(None) };
        match first.report.as_ref().and_then(|report| explain.again(report)) {
            Some(follow) => self.again(task, first, follow, on_progress),
            None => Ok(Some(first)),
        }
    }

    /// Runs a test once more, where what was found across tests is to be explained
    /// and its own run is not; `None` where that is not so, or was interrupted.
    pub(crate) fn explain(
        &self,
        task: &Task,
        first: &Outcome,
        found: &Outcome,
    ) -> anyhow::Result<Option<Outcome>> {
        let Some(report) = &first.report else { return Ok(None) };
        // As if it had found itself what was found across tests.
        let judged = Report { verdict: found.verdict.clone(), ..report.clone() };
        match self.options.scheduling.explain.again(&judged) {
            Some(follow) => self.again(task, first.clone(), follow, |_| {}),
            None => Ok(None),
        }
    }

    /// Runs a test once more to explain what the first run measured.
    fn again(
        &self,
        task: &Task,
        mut first: Outcome,
        follow: Follow,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<Outcome>> {
        let Some(report) = first.report.take() else { return Ok(Some(first)) };
        let Some(second) = self.once(task, follow.into(), on_progress)? else { return Ok(None) };
        let report = explain::merge(report, second.report);
        let duration = first.duration + second.duration;
        // A process that died after its report is judged by more than its report.
        let verdict = match first.verdict.has(Code::Crashed) {
            true => first.verdict,
            false => report.verdict.clone(),
        };
        Ok(Some(Outcome { verdict, report: Some(report), duration, ..first }))
    }

    /// Runs one test once.
    pub(crate) fn once(
        &self,
        task: &Task,
        setting: Setting,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<Outcome>> {
        let folder = self.folder()?;
        let (report, progress) =
            (folder.path().join("report.json"), folder.path().join("progress"));
        let launcher = &self.options.scheduling.launcher;
        let job = Job {
            version: VERSION,
            test: task.entry.name.clone(),
            report: report.clone(),
            progress: Some(match launcher {
                Launcher::None => process::PROGRESS_PATH.into(),
                Launcher::Command(_) => progress.clone(),
            }),
            device: task.leg.device.clone(),
            flags: self.options.flags.clone(),
            config: self.options.configuration.text.clone(),
            levels: self.options.levels.said().clone(),
            ci: self.options.mode == Mode::Ci,
            workspace: self.workspace_root.to_owned(),
            compiled_in: self.compiled_in.map(Path::to_owned),
            candle: task.candle.clone(),
            follow: setting.follow,
            case: setting.case,
            // We kill it ourselves, whatever happens.
            parent: None,
            alone: false,
            own_subscriber: false,
        };
        let mut command = launcher.command(&task.binary.path);
        command
            .arg(&task.entry.name)
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .args(task.entry.ignored.then_some("--include-ignored"))
            .args(&self.options.scheduling.libtest)
            .current_dir(&task.folder)
            .envs(task.binary.environment.iter().map(|(name, value)| (name, value)))
            .envs(&self.environment)
            .env_remove(variables::LIST)
            .env(variables::JOB, serde_json::to_string(&job)?);
        if task.leg.kind == Kind::Sim
            && let Some(nvml) = &self.nvml
        {
            command.env(NVML_VARIABLE, nvml);
        }
        let watch = Watch {
            kind: process::Kind::Own,
            timeout: task.limits.timeout.value,
            capture: self.options.scheduling.capture,
            interrupt: &self.interrupt,
        };
        if launcher.is_some() {
            let watch = Watch { kind: process::Kind::Launcher(&progress), ..watch };
            std::fs::write(&progress, "").with_context(|| progress.display().to_string())?;
            return self.launch(task, command, watch, (&report, ExitCode::Silent), on_progress);
        }
        let ended = process::run(command, watch, on_progress)
            .with_context(|| format!("{}: {}", task.binary.id, task.binary.path.display()))?;
        let Some(end) = ended.end else { return Ok(None) };
        let written = judge::Written::read(&report)?;
        Ok(Some(judge::judge(&end, written, task, &self.options.levels).outcome(ended)))
    }

    /// A folder of its own for what a process leaves: nothing that an earlier one
    /// left can speak for it.
    fn folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let reports = self.reports.path();
        tempfile::tempdir_in(reports).with_context(|| reports.display().to_string())
    }
}
