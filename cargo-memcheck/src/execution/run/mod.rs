//! Runs tests, each in its own child process, once for each stage that a test needs: `repeated`
//! runs one several times, `test` starts the process of a test, `program` that of a program, and
//! `launched` either through a launcher. `names` looks up the names of the call stacks in their
//! reports.

mod launched;
mod names;
mod program;
mod repeated;
mod test;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use memcheck_core::device::{Family, Request};
use memcheck_core::judgement::finding::{Code, Finding, Level};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::snapshot::remove_pending;
use memcheck_core::request::variables;
use memcheck_core::runs::explain::{Further, RunPlan, Stage, further};
use memcheck_core::runs::process_end::{self, End, ExpectedTest, Judged, Written};
use memcheck_core::wire::protocol::{Follow, Progress, Report};

use crate::build::leg::DeviceKind;
use crate::discovery::session::Session;
use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::options::Options;
use crate::system::gpus::{GpuPool, Slot};
use crate::system::printing::eprint_line;
use crate::system::process::Interrupt;
use crate::system::temporary::TemporaryFolder;
use names::Names;

#[derive(Debug, Clone, Default)]
pub(crate) struct RunSettings {
    pub(crate) run: RunPlan,
    pub(crate) case: BTreeMap<String, String>,
}

impl From<RunPlan> for RunSettings {
    fn from(run: RunPlan) -> Self {
        Self { run, ..Self::default() }
    }
}

impl From<Follow> for RunSettings {
    fn from(follow: Follow) -> Self {
        RunPlan { follow, ..RunPlan::default() }.into()
    }
}

#[derive(Debug)]
pub(crate) struct Runner<'a> {
    options: &'a Options,
    roots: Roots<'a>,
    compiled_in: Option<&'a Path>,
    environment: BTreeMap<&'static str, OsString>,
    nvml: Option<PathBuf>,
    reports: TemporaryFolder,
    interrupt: Interrupt,
    pool: GpuPool,
    names: Names,
}

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
        let mut environment: BTreeMap<&'static str, OsString> = BTreeMap::from([
            // Without it an assertion of insta in a body starts cargo, whose answer would be counted.
            ("INSTA_WORKSPACE_ROOT", workspace.root().into()),
            (variables::RAYON_NUM_THREADS.name, (&options.rayon_threads).into()),
        ]);
        if let Some(folder) = session.pending_directory() {
            environment.insert("INSTA_PENDING_DIR", folder.into());
        }
        let (roots, compiled_in) = (session.roots(), session.compiled_in());
        let (pool, names) = (GpuPool::default(), Names::default());
        Ok(Self { options, roots, compiled_in, environment, nvml, reports, interrupt, pool, names })
    }

    /// All runs use the same GPU. `None` if one was interrupted.
    pub(crate) fn run(
        &self,
        task: &Task,
        on_progress: impl Fn(Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        let slot = self.slot(task);
        match self.options.scheduling.repeat {
            None => {
                let soak = self.options.scheduling.soak.map(Stage::Soak);
                let stages: Vec<Stage> = Stage::ALL.into_iter().chain(soak).collect();
                self.measured(slot.as_ref(), task, &stages, on_progress)
            }
            Some(times) => self.repeated(slot.as_ref(), task, times, on_progress),
        }
    }

    fn measured(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        stages: &[Stage],
        on_progress: impl Fn(Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        let explain = self.options.scheduling.explain;
        let first = self.run_on(slot, task, explain.first().into(), on_progress.clone())?;
        Ok(first.map(|first| self.further(slot, task, first, stages, &on_progress)))
    }

    /// `None` if there is no report, or if the findings across tests need no further explanation.
    pub(crate) fn explain(
        &self,
        task: &Task,
        first: &TestOutcome,
        found: &TestOutcome,
    ) -> Option<TestOutcome> {
        let report = first.report.as_ref()?;
        // The stage must see the findings across tests as if the test itself had found them.
        let judged = Report { verdict: found.verdict.clone(), ..report.clone() };
        Stage::Explain.run(self.options.scheduling.explain, &judged)?;
        let slot = self.slot(task);
        let judged = TestOutcome { report: Some(judged), ..first.clone() };
        let stages: Vec<Stage> =
            Stage::ALL.into_iter().skip_while(|stage| *stage != Stage::Explain).collect();
        let mut explained = self.further(slot.as_ref(), task, judged, &stages, &|_| {});
        explained.verdict.findings.retain(|finding| is_own(finding, first, found));
        Some(explained)
    }

    /// The figures of the runs before stay if a run is interrupted or cannot be started.
    fn further(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        mut outcome: TestOutcome,
        stages: &[Stage],
        on_progress: &(impl Fn(Progress) + Send + Clone + 'static),
    ) -> TestOutcome {
        let mut duration = outcome.duration;
        let run = |_, run: RunPlan| match self.run_on(slot, task, run.into(), on_progress.clone()) {
            Ok(Some(second)) => {
                duration += second.duration;
                match second.report {
                    Some(report) => Further::Ended(Some(Box::new(report))),
                    None => Further::Lost(second.verdict.findings),
                }
            }
            Ok(None) => Further::Skipped,
            Err(error) => {
                eprint_line!("warning: {} cannot be run again: {error:#}", task.name());
                Further::Skipped
            }
        };
        let explain = self.options.scheduling.explain;
        let judged = outcome.take_judged();
        let judged = further(judged, explain, stages, run, names::baseline, self.level());
        outcome.duration = duration;
        self.finished(outcome, judged)
    }

    fn finished(&self, outcome: TestOutcome, judged: Judged) -> TestOutcome {
        if let Some(pending) = &judged.obsolete
            && let Err(error) = remove_pending(pending)
        {
            eprint_line!("warning: {}: {error}", pending.display());
        }
        TestOutcome { verdict: judged.verdict, report: judged.report, ..outcome }
    }

    fn level(&self) -> impl Fn(Code) -> Level {
        |code| self.options.levels.of(code)
    }

    pub(crate) fn once(
        &self,
        task: &Task,
        setting: RunSettings,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        self.run_on(self.slot(task).as_ref(), task, setting, on_progress)
    }

    /// Waits until one is free.
    fn slot<'s>(&'s self, task: &'s Task) -> Option<Slot<'s>> {
        let on_a_gpu = task.family() == Family::Cuda;
        self.pool.take(if on_a_gpu { task.leg.gpus.as_slice() } else { &[] })
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

    /// Judges the report if the process could not, because its call stacks have no names.
    fn written(&self, report: &Path, task: &Task) -> anyhow::Result<Written> {
        let mut written = Written::read(report).with_context(|| report.display().to_string())?;
        if let Written::Report(report) = &mut written {
            self.names.complete(report, &task.binary, &self.options.levels);
        }
        Ok(written)
    }

    fn judge(&self, end: &End, written: Written, task: &Task) -> Judged {
        let family = task.family();
        process_end::judge(end, written, ExpectedTest { test: task.name(), family }, self.level())
    }

    /// Separate, so that a file of an earlier process cannot be taken for that of this one.
    fn folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let reports = self.reports.path();
        tempfile::tempdir_in(reports).with_context(|| reports.display().to_string())
    }
}

/// The caller adds findings across tests again, so they must be removed here.
fn is_own(finding: &Finding, first: &TestOutcome, found: &TestOutcome) -> bool {
    let same = |known: &Finding| {
        (known.code, known.space, &known.message) == (finding.code, finding.space, &finding.message)
    };
    let has = |outcome: &TestOutcome| outcome.verdict.findings.iter().any(same);
    has(first) || !has(found)
}

/// Of several real GPUs a test opens the first one that it can see.
fn device(slot: Option<&Slot<'_>>, task: &Task) -> Request {
    match slot {
        Some(_) => Request::Cuda(None),
        None => task.leg.device.clone(),
    }
}
