//! Resolves the command line up to the list of tests: the part of the pipeline that `run`, `list`
//! and `prune` share.

mod features;
mod source;

use std::path::PathBuf;
use std::sync::Arc;

use memcheck_core::device::Family;
use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::request::config;

use crate::build::compile::Built;
use crate::build::leg::{DeviceKind, Leg};
use crate::build::workspace::{TestPackage, Workspace};
use crate::discovery::archive::Unpacked;
use crate::discovery::listing::{DiscoverError, ListedExecutable};
use crate::discovery::select::{Choice, choose};
use crate::discovery::task::{Task, TestSubject};
use crate::invocation::config::Configuration;
use crate::invocation::options::{
    Flags, Mode, Options, Pending, ReportContext, Selection, Typed, environment,
};
use crate::invocation::suggestion;
use crate::invocation::values::Verbosity;
use crate::system::binary::Binary;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

use source::Targets;

pub(crate) use source::TestSource;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) options: Options,
    pub(crate) workspace: Workspace,
    /// The same workspace with the features that only builds for a GPU have, if there are any.
    with_features: Option<Workspace>,
    /// The folder of the baselines if they are not next to the tests.
    baselines: Option<PathBuf>,
    pub(crate) source: TestSource,
    pub(crate) packages: Vec<TestPackage>,
    pub(crate) legs: Vec<Leg>,
    /// About the packages, for the header.
    notes: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct LegTests {
    pub(crate) leg: Leg,
    pub(crate) built: Built,
    pub(crate) carried: Vec<ListedExecutable>,
}

#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) run: Vec<Task>,
    pub(crate) ignored: Vec<Task>,
    pub(crate) elsewhere: Vec<Task>,
    /// One task for each executable whose tests are not known.
    pub(crate) unlisted: Vec<(Task, Arc<DiscoverError>)>,
}

/// Stands for the tests of an executable that could not be listed.
const UNLISTED: &str = "(all tests)";

impl Session {
    pub(crate) fn open(flags: Flags) -> Result<Self, Failure> {
        let typed = Typed::read(flags, &environment, is_ci::cached())?;
        let Flags { cargo, archive, sharing, probe, .. } = &typed.flags;
        let how = (*sharing, *probe);
        let (mut source, workspace) = TestSource::open(archive, cargo)?;
        let sources = source.archive().map_or(workspace.root(), Unpacked::sources);
        let named = typed.flags.config_file.as_deref();
        // After the flags, which can name the file, and the workspace, which it is in otherwise.
        let configuration = Configuration::read(workspace.root(), sources, named)?;
        let options = typed.with_configuration(configuration, &environment)?;
        let Targets { packages, legs, with_features, notes } =
            source.targets(&workspace, &options, how)?;
        let root = workspace.root();
        let baselines = options.baselines.as_ref().map(|folder| location::absolute(root, folder));
        Ok(Self { options, workspace, with_features, baselines, source, packages, legs, notes })
    }

    /// The dependency graph of builds for a GPU.
    pub(crate) fn graph_of_gpu(&self) -> &Workspace {
        self.with_features.as_ref().unwrap_or(&self.workspace)
    }

    pub(crate) fn roots(&self) -> Roots<'_> {
        Roots::new(self.workspace.root(), self.baselines.as_deref())
    }

    pub(crate) fn report_context(&self) -> ReportContext<'_> {
        let Options { reporting, scheduling, .. } = &self.options;
        ReportContext {
            reporting,
            pending: match self.pending_directory() {
                _ if self.options.own_pending => Pending::Unlisted,
                Some(folder) => Pending::In(folder),
                None => Pending::NextToBaselines,
            },
            roots: self.roots(),
            capture: scheduling.capture,
            no_tests: scheduling.no_tests,
            filters: &self.options.selection.filters,
            is_replay: false,
        }
    }

    pub(crate) fn announce(&self) {
        if self.options.reporting.verbosity == Verbosity::Quiet {
            return;
        }
        if let TestSource::Archive(archive) = &self.source {
            eprint_line!("archive: {}", archive.described());
            if archive.is_temporary() && self.options.scheduling.launcher.is_some() {
                eprint_line!(
                    "note: it is extracted to a temporary directory of this machine; \
                     --extract-to names one that others see"
                );
            }
        }
        for leg in &self.legs {
            let what = match leg.kind {
                DeviceKind::Cpu => "candle's CPU backend",
                DeviceKind::Sim => "simulated",
                DeviceKind::Cuda => "real",
            };
            eprint_line!("device: {} ({what}; {})", leg.name(), leg.why);
        }
        for line in features::lines(&self.legs, &self.packages) {
            eprint_line!("{line}");
        }
        for note in &self.notes {
            eprint_line!("note: {note}");
        }
        if self.options.mode == Mode::Ci {
            eprint_line!("ci: the source tree is not changed");
        }
    }

    /// A warning for each filter that matches no test of these legs.
    pub(crate) fn unmatched_filters(&self, legs: &[LegTests]) -> Vec<String> {
        let carried = legs.iter().flat_map(|leg| &leg.carried);
        let names: Vec<&str> =
            carried.flat_map(|it| &it.tests).map(|entry| entry.name.as_str()).collect();
        let Selection { filters, exact, .. } = &self.options.selection;
        suggestion::unmatched(filters, *exact, &names)
    }

    pub(crate) fn choose(&self, tests: &LegTests) -> Chosen {
        self.choose_by(&self.options.selection, tests)
    }

    pub(crate) fn choose_all_parts(&self, tests: &LegTests) -> Chosen {
        let all = Selection { partition: None, ..self.options.selection.clone() };
        self.choose_by(&all, tests)
    }

    fn choose_by(&self, selection: &Selection, tests: &LegTests) -> Chosen {
        let mut chosen = Chosen::default();
        for carried in &tests.carried {
            let package = &self.packages[carried.binary.package];
            if let Some(why) = &carried.unlisted {
                let file = package.package.manifest_path.as_std_path();
                let file = file.strip_prefix(self.workspace.root()).unwrap_or(file).to_owned();
                let subject = TestSubject::Program { name: UNLISTED.to_owned(), file };
                let task = self.task(package, &carried.binary, subject, &tests.leg);
                chosen.unlisted.push((task, Arc::clone(why)));
            }
            for entry in &carried.tests {
                let choice = choose(selection, &tests.leg, package.name(), entry);
                let into = match choice {
                    Choice::Run => &mut chosen.run,
                    Choice::Ignored => &mut chosen.ignored,
                    Choice::Elsewhere => &mut chosen.elsewhere,
                    Choice::Filtered => continue,
                };
                let subject = TestSubject::Test(Box::new(entry.clone()));
                into.push(self.task(package, &carried.binary, subject, &tests.leg));
            }
        }
        chosen
    }

    pub(crate) fn task(
        &self,
        package: &TestPackage,
        binary: &Binary,
        subject: TestSubject,
        leg: &Leg,
    ) -> Task {
        let Options { configuration, environment, flags, .. } = &self.options;
        let family = subject.family_on(leg.family());
        let of = config::Subject { package: package.name(), test: subject.name(), family };
        let config = &configuration.config;
        let limits = match &subject {
            TestSubject::Test(entry) => config.limits(of, &entry.attribute, environment, flags),
            TestSubject::Program { .. } => config.program_limits(of, environment, flags),
        };
        Task {
            package: package.name().to_owned(),
            folder: package.folder().to_owned(),
            candle: package.candle.clone().unwrap_or_else(|| "none".to_owned()),
            features: match family {
                Family::Cuda => package.feature_fact(leg.kind),
                // A test without a device has one baseline for all devices.
                Family::Cpu => None,
            },
            binary: binary.clone(),
            subject,
            leg: leg.clone(),
            limits,
        }
    }
}
