//! Runs tests, each in processes of its own. The conductor says which run of a test is needed:
//! `test` starts the process of a test, `program` that of a program, and `launched` either through a
//! launcher. `repeated` runs a test several times.

mod launched;
mod measured;
mod program;
mod repeated;
mod test;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use memcheck_conduct::names::Names;
use memcheck_conduct::snapshots::Snapshots;
use memcheck_conduct::{Conductor, run_of};
use memcheck_core::device::{Family, Request};
use memcheck_core::judgement::finding::Finding;
use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::request::variables;
use memcheck_core::runs::measured::Run;
use memcheck_core::runs::plan::{RunPlan, Stage};
use memcheck_core::runs::process_end::{self, End, Ended, ExpectedTest, Written};
use memcheck_core::runs::relations::OtherTests;
use memcheck_core::wire::last_state::LastState;
use memcheck_core::wire::protocol::Progress;

use crate::build::leg::DeviceKind;
use crate::discovery::session::Session;
use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::options::Options;
use crate::system::gpus::{GpuPool, Slot};
use crate::system::printing::eprint_line;
use crate::system::process::{Interrupt, Output};
use crate::system::temporary::TemporaryFolder;
pub(crate) use measured::TestRuns;

#[derive(Debug, Clone, Default)]
pub(crate) struct RunSettings {
    pub(crate) plan: RunPlan,
    pub(crate) case: BTreeMap<String, String>,
}

impl From<RunPlan> for RunSettings {
    fn from(plan: RunPlan) -> Self {
        Self { plan, ..Self::default() }
    }
}

/// A process that has ended.
struct EndedProcess {
    ended: Ended,
    output: Output,
    duration: std::time::Duration,
}

impl EndedProcess {
    fn unstarted(finding: Finding) -> Self {
        let (output, duration) = (Output::default(), std::time::Duration::ZERO);
        Self { ended: finding.into(), output, duration }
    }
}

#[derive(Debug)]
pub(crate) struct Runner<'a> {
    options: &'a Options,
    roots: Roots<'a>,
    compiled_in: Option<&'a Path>,
    environment: BTreeMap<&'static str, OsString>,
    pending: Option<PathBuf>,
    nvml: Option<PathBuf>,
    reports: TemporaryFolder,
    interrupt: Interrupt,
    pool: GpuPool,
    names: Names,
}

/// The variable by which insta writes pending snapshots to a folder that mirrors the workspace.
const PENDING: &str = "INSTA_PENDING_DIR";

impl<'a> Runner<'a> {
    /// A separate folder for pending snapshots is not emptied, so that several runs in one job add
    /// up.
    pub(crate) fn prepare(
        session: &'a Session,
        nvml: Option<PathBuf>,
        interrupt: Interrupt,
    ) -> anyhow::Result<Self> {
        let Session { options, workspace, .. } = session;
        let own = workspace.own_directory();
        std::fs::create_dir_all(&own).with_context(|| own.display().to_string())?;
        let reports =
            TemporaryFolder::new(&own, "run-").with_context(|| own.display().to_string())?;
        // Without it an assertion of insta in a body starts cargo, whose answer would be counted.
        let mut environment: BTreeMap<&'static str, OsString> =
            BTreeMap::from([("INSTA_WORKSPACE_ROOT", workspace.root().into())]);
        let of_user = || std::env::var_os(PENDING).filter(|folder| !folder.is_empty());
        let pending = session.pending_directory().or_else(|| of_user().map(PathBuf::from));
        if let Some(folder) = &pending {
            // The assertions of a body write there too.
            environment.insert(PENDING, folder.into());
        }
        Ok(Self {
            options,
            roots: session.roots(),
            compiled_in: session.compiled_in(),
            environment,
            pending,
            nvml,
            reports,
            interrupt,
            pool: GpuPool::default(),
            names: Names::default(),
        })
    }

    /// Runs a test as often as it needs, and concludes it. `None` if a run was interrupted.
    pub(crate) fn run(
        &self,
        task: &Task,
        on_progress: impl Fn(Stage, Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        let runs = self.measure(task, on_progress)?;
        Ok(runs.map(|runs| self.conclude(task, &runs)))
    }

    /// Runs a test as often as its own figures need. All runs use the same GPU. `None` if the first
    /// was interrupted.
    pub(crate) fn measure(
        &self,
        task: &Task,
        on_progress: impl Fn(Stage, Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestRuns>> {
        let slot = self.slot(task);
        match self.options.scheduling.repeat {
            None => {
                let soak = self.options.scheduling.soak.map(Stage::Soak);
                let stages: Vec<Stage> = Stage::ALL.into_iter().chain(soak).collect();
                self.series(slot.as_ref(), task, stages, on_progress)
            }
            Some(times) => self.repeated(slot.as_ref(), task, times, on_progress),
        }
    }

    fn series(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        stages: impl Into<Vec<Stage>>,
        on_progress: impl Fn(Stage, Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestRuns>> {
        let mut runs = TestRuns::new(self.options.scheduling.explain, stages, task, self.roots);
        let first = (Stage::First, self.options.scheduling.explain.first());
        let of_first = on_progress.clone();
        let on_first = move |progress| of_first(Stage::First, progress);
        let Some(process) = self.run_on(slot, task, first.1.clone().into(), on_first)? else {
            return Ok(None);
        };
        runs.first(
            self.run_of(task, first, Some(process.ended)),
            (process.output, process.duration),
        );
        self.with_conductor(|conductor| {
            let TestRuns { test, baseline, duration, .. } = &mut runs;
            conductor.run(test, baseline, |stage, plan| {
                self.further(slot, task, (stage, plan), on_progress.clone(), duration)
            });
        });
        Ok(Some(runs.on(slot)))
    }

    /// Compares a test with the tests whose figures it needs.
    pub(crate) fn relate(&self, task: &Task, runs: &mut TestRuns, others: &OtherTests<'_>) {
        let slot = self.slot(task);
        let TestRuns { test, baseline, duration, .. } = runs;
        self.with_conductor(|conductor| {
            conductor.relate(test, baseline, others, |stage, plan| {
                self.further(slot.as_ref(), task, (stage, plan), |_, _| {}, duration)
            });
        });
    }

    /// The figures of the runs before stay if a run is interrupted or cannot be started.
    fn further(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        (stage, plan): (Stage, RunPlan),
        on_progress: impl Fn(Stage, Progress) + Send + 'static,
        duration: &mut std::time::Duration,
    ) -> Run {
        let on_progress = move |progress| on_progress(stage, progress);
        let process = match self.run_on(slot, task, plan.clone().into(), on_progress) {
            Ok(process) => process,
            Err(error) => {
                eprint_line!("warning: {} cannot be run again: {error:#}", task.name());
                None
            }
        };
        *duration += process.as_ref().map_or(std::time::Duration::ZERO, |it| it.duration);
        self.run_of(task, (stage, plan), process.map(|process| process.ended))
    }

    /// One run that needs no other, such as that of a program.
    fn single(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        plan: RunPlan,
        process: EndedProcess,
    ) -> TestRuns {
        let mut runs = TestRuns::new(self.options.scheduling.explain, [], task, self.roots);
        let EndedProcess { ended, output, duration } = process;
        runs.first(self.run_of(task, (Stage::First, plan), Some(ended)), (output, duration));
        runs.on(slot)
    }

    fn run_of(&self, task: &Task, planned: (Stage, RunPlan), ended: Option<Ended>) -> Run {
        let readable = || task.binary.readable_path();
        let executable = task.binary.path();
        let source = location::source(self.roots.workspace, task.subject.file());
        let source = source.strip_prefix(self.roots.workspace).unwrap_or(&source);
        let test = task.subject.test().map(|entry| (source, entry.line));
        let ended = ended.map(|ended| self.names.locate(ended, executable, readable, test));
        run_of(planned, ended, |measurement| self.names.name(measurement, executable, readable))
    }

    fn with_conductor<T>(&self, then: impl FnOnce(&Conductor<'_>) -> T) -> T {
        let snapshots =
            Snapshots { roots: self.roots, pending: self.pending.as_deref(), writes: true };
        then(&Conductor { snapshots, level: &|code| self.options.levels.of(code) })
    }

    pub(crate) fn once(
        &self,
        task: &Task,
        setting: RunSettings,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        let slot = self.slot(task);
        let plan = setting.plan.clone();
        let process = self.run_on(slot.as_ref(), task, setting, on_progress)?;
        Ok(process
            .map(|process| self.conclude(task, &self.single(slot.as_ref(), task, plan, process))))
    }

    /// Waits until one is free.
    fn slot<'s>(&'s self, task: &'s Task) -> Option<Slot<'s>> {
        let on_a_gpu = task.family() == Family::Cuda;
        self.pool.take(if on_a_gpu { task.leg.gpus.as_slice() } else { &[] })
    }

    /// The number of threads of rayon's pool: the test's own or that of all tests.
    fn set_threads(&self, command: &mut Command, task: &Task) {
        let own = task.limits.threads.value.map(|threads| threads.to_string());
        let threads = own.unwrap_or_else(|| self.options.rayon_threads.clone());
        command.env(variables::RAYON_NUM_THREADS.name, threads);
    }

    fn show_gpus(&self, command: &mut Command, slot: Option<&Slot<'_>>, task: &Task) {
        if task.leg.kind == DeviceKind::Sim
            && let Some(nvml) = &self.nvml
        {
            command.env(variables::SIM_NVML, nvml);
        }
        if let Some(slot) = slot {
            slot.show(command);
        }
    }

    fn written(report: &Path) -> anyhow::Result<Written> {
        Written::read(report).with_context(|| report.display().to_string())
    }

    fn judge(end: &End, written: Written, report: &Path, task: &Task) -> Ended {
        let timeout = Some(&task.limits.timeout);
        let expected = ExpectedTest { test: task.name(), family: task.family(), timeout };
        process_end::judge(end, written, LastState::read(report), expected)
    }

    /// Separate, so that a file of an earlier process cannot be taken for that of this one.
    fn folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let reports = self.reports.path();
        tempfile::tempdir_in(reports).with_context(|| reports.display().to_string())
    }
}

/// Of several real GPUs a test opens the first one that it can see.
fn device(slot: Option<&Slot<'_>>, task: &Task) -> Request {
    match slot {
        Some(_) => Request::Cuda(None),
        None => task.leg.device.clone(),
    }
}
