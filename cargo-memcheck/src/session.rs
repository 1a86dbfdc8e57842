//! Resolves the command line up to the list of tests: the part of the pipeline that `run`, `list` and `prune` share.

use std::path::{Path, PathBuf};

use memcheck_core::limits::Limits;
use memcheck_core::request::config::Subject;
use memcheck_core::wire::protocol::Entry;

use crate::archive::Unpacked;
use crate::build::{self, Built};
use crate::cli::{CargoFlags, RunArgs};
use crate::config::Configuration;
use crate::devices::{self, Kind, Leg};
use crate::discover::Carried;
use crate::error::Failure;
use crate::options::{
    Aim, Audience, Mode, Options, Pending, Selection, Typed, Verbosity, environment,
};
use crate::select::{Choice, choose};
use crate::talk::say;
use crate::task::Task;
use crate::toolchain::gpu;
use crate::workspace::{Places, TestPackage, Workspace, pending_of_results};

/// The inputs of a run that are resolved before the build.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) options: Options,
    pub(crate) workspace: Workspace,
    /// The archive that replaces the build.
    pub(crate) archive: Option<Unpacked>,
    /// The selected packages with memory tests.
    pub(crate) packages: Vec<TestPackage>,
    pub(crate) legs: Vec<Leg>,
}

/// The tests of one leg.
#[derive(Debug)]
pub(crate) struct LegTests {
    pub(crate) leg: Leg,
    /// The build for the device.
    pub(crate) built: Built,
    /// The executables with their tests.
    pub(crate) carried: Vec<Carried>,
}

/// The tests of one leg, grouped by the decision about them.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) run: Vec<Task>,
    pub(crate) ignored: Vec<Task>,
    /// The tests that need another device.
    pub(crate) elsewhere: Vec<Task>,
}

impl Session {
    /// Resolves everything that does not need a build.
    pub(crate) fn open(args: &RunArgs, aim: Aim) -> Result<Self, Failure> {
        let typed = Typed::read(args, aim, &environment, is_ci::cached())?;
        let archive = args.archive.archive_file.as_ref();
        let mut archive = archive.map(|file| Unpacked::open(file, &args.archive)).transpose()?;
        let workspace = match &archive {
            Some(archive) => archive.workspace(),
            None => Workspace::load(&args.cargo)?,
        };
        let sources = archive.as_ref().map_or(workspace.root(), Unpacked::sources);
        let named = typed.config_file.as_deref();
        let configuration = Configuration::read(workspace.root(), sources, named)?;
        let options = typed.with(configuration, &environment)?;
        let launcher = &options.scheduling.launcher;
        let (packages, legs) = match &archive {
            Some(archive) => {
                let how = (launcher, aim.sharing());
                let legs = archive.legs(&options.asked, &options.machine, how, gpu::gpus)?;
                (archive.packages(&workspace), legs)
            }
            None => {
                let packages = workspace.select(&options.cargo)?;
                let has_candle = packages.iter().any(|package| package.candle.is_some());
                let lacks = (!has_candle).then_some("no package has candle-core");
                let probe = || match aim {
                    Aim::Run | Aim::Profile | Aim::Room => gpu::probe(launcher),
                    Aim::Archive => gpu::probe_compiler(),
                };
                let (asked, machine) = (&options.asked, &options.machine);
                let legs = devices::resolve(asked, machine, lacks, aim.sharing(), probe)?;
                (packages, legs)
            }
        };
        if let Some(archive) = &mut archive {
            archive.keep();
        }
        Ok(Self { options, workspace, archive, packages, legs })
    }

    /// Returns the folder in which the test executables were compiled, if they come from an archive.
    pub(crate) fn compiled_in(&self) -> Option<&Path> {
        self.archive.as_ref().map(Unpacked::compiled_in)
    }

    /// True if only some kinds of targets were built.
    pub(crate) fn names_targets(&self) -> bool {
        match &self.archive {
            Some(archive) => archive.names_targets(),
            None => self.options.cargo.names_targets(),
        }
    }

    /// Returns the folder for the results of the run.
    pub(crate) fn results_directory(&self) -> PathBuf {
        let unsaid = || match &self.archive {
            // The folder of an extracted archive may be temporary. Cargo is not needed to run an archive, so it is not asked either.
            Some(_) => Places::here(&CargoFlags::default()).results_directory(),
            None => self.workspace.results_directory(),
        };
        self.options.results.clone().unwrap_or_else(unsaid)
    }

    /// Returns the folder for pending snapshots, if they are not written next to the tests. It mirrors the workspace.
    pub(crate) fn pending_directory(&self) -> Option<PathBuf> {
        match (&self.archive, self.options.mode) {
            // The folder of an extracted archive may be temporary, but results are kept.
            (Some(_), _) => Some(pending_of_results(&self.results_directory())),
            (None, Mode::Ci) => Some(self.workspace.pending_directory()),
            (None, Mode::Local) => None,
        }
    }

    /// Returns the inputs of the presenters.
    pub(crate) fn audience(&self) -> Audience<'_> {
        let Options { telling, scheduling, .. } = &self.options;
        Audience {
            telling,
            pending: self.pending_directory().map_or(Pending::Beside, Pending::In),
            capture: scheduling.capture,
            no_tests: scheduling.no_tests,
            filters: &self.options.selection.filters,
        }
    }

    /// Returns the target directory of legs of this kind.
    pub(crate) fn target_directory(&self, kind: Kind) -> PathBuf {
        build::target_directory(&self.workspace, kind)
    }

    /// Prints the devices of the run, and the reasons for choosing them.
    pub(crate) fn announce(&self) {
        if self.options.telling.verbosity == Verbosity::Quiet {
            return;
        }
        if let Some(archive) = &self.archive {
            say!("archive: {}", archive.described());
            if archive.is_temporary() && self.options.scheduling.launcher.is_some() {
                say!(
                    "note: it is extracted to a temporary directory of this machine; \
                     --extract-to names one that others see"
                );
            }
        }
        for leg in &self.legs {
            let what = match leg.kind {
                Kind::Cpu => "candle's CPU backend",
                Kind::Sim => "simulated",
                Kind::Cuda => "real",
            };
            say!("device: {} ({what}; {})", leg.name(), leg.why);
        }
        if self.options.mode == Mode::Ci {
            say!("ci: nothing is written into the source tree");
        }
    }

    /// Groups the tests of a leg by the decision about them.
    pub(crate) fn choose(&self, tests: &LegTests) -> Chosen {
        self.choose_by(&self.options.selection, tests)
    }

    /// Groups the tests of a leg as if all parts of a partition ran here.
    pub(crate) fn choose_all_parts(&self, tests: &LegTests) -> Chosen {
        let all = Selection { partition: None, ..self.options.selection.clone() };
        self.choose_by(&all, tests)
    }

    fn choose_by(&self, selection: &Selection, tests: &LegTests) -> Chosen {
        let mut chosen = Chosen::default();
        for carried in &tests.carried {
            let package = &self.packages[carried.binary.package];
            for entry in &carried.tests {
                let choice = choose(selection, &tests.leg, package.name(), entry);
                let into = match choice {
                    Choice::Run => &mut chosen.run,
                    Choice::Ignored => &mut chosen.ignored,
                    Choice::Elsewhere => &mut chosen.elsewhere,
                    Choice::Filtered => continue,
                };
                into.push(Task {
                    package: package.name().to_owned(),
                    folder: package.folder().to_owned(),
                    candle: package.candle.clone().unwrap_or_else(|| "none".to_owned()),
                    binary: carried.binary.clone(),
                    entry: entry.clone(),
                    leg: tests.leg.clone(),
                    limits: self.limits(package.name(), entry, &tests.leg),
                });
            }
        }
        chosen
    }

    /// Returns the limits that apply to a test on a leg.
    fn limits(&self, package: &str, entry: &Entry, leg: &Leg) -> Limits {
        let subject = Subject { package, test: &entry.name, family: entry.family_on(leg.family()) };
        self.options.configuration.config.limits(
            subject,
            &entry.attribute,
            &self.options.environment,
            &self.options.flags,
        )
    }
}
