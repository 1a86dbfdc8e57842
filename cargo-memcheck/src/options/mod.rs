//! What is meant: flags, environment and configuration, resolved once.
//!
//! In two steps, so that a command line which makes no sense is refused
//! before anything is looked for on disk: [`Typed`] needs flags and
//! environment only, [`Options`] the configuration too.

mod aim;
mod levels;
mod partition;
mod telling;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use memcheck_core::device::Request;
use memcheck_core::exit;
use memcheck_core::explain::Explain;
use memcheck_core::finding::Code;
use memcheck_core::limits::Layer;
use memcheck_core::settings::WrittenError;
use memcheck_core::variables::{self, VariableError};
use serde::{Deserialize, Serialize};

use crate::cli::{CargoFlags, LibtestArgs, LibtestError, NoTestsFlag, RunArgs, RunIgnoredFlag};
use crate::config::Configuration;
use crate::devices::{self, Asked, DeviceError};
use crate::error::{Expected, Failure};
use crate::launcher::{Launcher, LauncherError};
use crate::libraries::Search;

pub(crate) use aim::Aim;
pub(crate) use levels::Levels;
pub(crate) use partition::{Partition, hash};
pub(crate) use telling::{Annotations, Audience, Pending, Telling, Verbosity};

/// Why a command line makes no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    /// A code or a level.
    #[error(transparent)]
    Code(#[from] memcheck_core::finding::CodeError),
    /// A limit.
    #[error(transparent)]
    Limit(#[from] WrittenError),
    /// A variable of the environment.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// `--partition`.
    #[error("`{0}` is not a partition: write hash:M/N with M from 1 to N")]
    Partition(String),
    /// `--test-threads`.
    #[error("`{0}` is not a number of threads")]
    Threads(String),
    /// `--runner`.
    #[error("--runner: {0}")]
    Launcher(LauncherError),
    /// Flags of a build beside something that was built.
    #[error("--archive-file and cargo's options exclude each other: the archive is built already")]
    Built,
    /// A way to select tests that says nothing about files.
    #[error("prune takes filters, and no {0}: it removes files, not tests")]
    Prune(&'static str),
}

impl Expected for OptionsError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }
}

/// Reads a variable of the environment; empty is unset.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Whether the source tree may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// A developer's machine: pending snapshots lie beside the tests.
    Local,
    /// CI: nothing in the source tree is written.
    Ci,
}

/// What happens to the output of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// Kept, and shown for tests that fail.
    Kept,
    /// Shown as it comes.
    Shown,
    /// Left alone: what a bench prints on stdout is its result.
    None,
}

/// Which tests.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// Substrings of the path, or paths.
    pub(crate) filters: Vec<String>,
    /// Whether filters are whole paths.
    pub(crate) exact: bool,
    /// Substrings of tests to leave out.
    pub(crate) skip: Vec<String>,
    /// What is done about `#[ignore]`.
    pub(crate) ignored: RunIgnoredFlag,
    /// One part of the tests only.
    pub(crate) partition: Option<Partition>,
}

/// How tests are run.
#[derive(Debug, Clone)]
pub(crate) struct Scheduling {
    /// Tests at the same time; `None`: as many as the device and the cores allow.
    pub(crate) threads: Option<NonZeroUsize>,
    /// Whether the first failure ends the run.
    pub(crate) fail_fast: bool,
    /// What it means that no test is selected.
    pub(crate) no_tests: NoTestsFlag,
    /// What happens to the output of tests.
    pub(crate) capture: Capture,
    /// When tests are run with call stacks.
    pub(crate) explain: Explain,
    /// Arguments for the test harness.
    pub(crate) libtest: Vec<String>,
    /// Who starts test processes.
    pub(crate) launcher: Launcher,
}

/// What flags and environment say.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    cargo: CargoFlags,
    selection: Selection,
    scheduling: Scheduling,
    telling: Telling,
    results: Option<PathBuf>,
    library_path: Vec<PathBuf>,
    mode: Mode,
    launcher: Option<Launcher>,
    asked: Option<Asked>,
    machine: String,
    flags: Layer,
    environment: Layer,
    levels: BTreeMap<Code, memcheck_core::finding::Level>,
    /// The configuration file, where one is named.
    pub(crate) config_file: Option<PathBuf>,
}

/// Everything that is meant.
#[derive(Debug)]
pub(crate) struct Options {
    /// Cargo's own flags.
    pub(crate) cargo: CargoFlags,
    /// Which tests.
    pub(crate) selection: Selection,
    /// How they are run.
    pub(crate) scheduling: Scheduling,
    /// How results are told.
    pub(crate) telling: Telling,
    /// Where results are kept, where that is said.
    pub(crate) results: Option<PathBuf>,
    /// Where shared libraries are looked for.
    pub(crate) search: Search,
    /// Whether the source tree may be written to.
    pub(crate) mode: Mode,
    /// The devices, and who asked for them.
    pub(crate) asked: Asked,
    /// The simulated machine where a device names none.
    pub(crate) machine: String,
    /// Limits on the command line.
    pub(crate) flags: Layer,
    /// Limits in the environment.
    pub(crate) environment: Layer,
    /// What is done about bookkeeping findings.
    pub(crate) levels: Levels,
    /// The configuration.
    pub(crate) configuration: Configuration,
    /// `RAYON_NUM_THREADS` of a test.
    pub(crate) rayon_threads: String,
}

impl Typed {
    /// Reads flags and environment.
    pub(crate) fn read(
        args: &RunArgs,
        aim: Aim,
        get: &dyn Fn(&str) -> Option<String>,
        in_ci: bool,
    ) -> Result<Self, Failure> {
        let RunArgs {
            select,
            ci,
            part,
            archive,
            schedule,
            limits,
            levels,
            report,
            output,
            cargo,
            results,
            libtest,
        } = args;
        if archive.archive_file.is_some() && *cargo != CargoFlags::default() {
            return Err(OptionsError::Built.into());
        }
        let libtest = LibtestArgs::read(libtest).map_err(|error: LibtestError| error)?;
        let threads = schedule.test_threads.as_ref().or(libtest.test_threads.as_ref());
        let flagged = (!select.device.is_empty())
            .then(|| devices::parse_list(select.device.iter().map(String::as_str)))
            .transpose()?
            .map(|requests| Asked { requests, by: devices::By::Flag });
        let asked = match (flagged, get(variables::DEVICE.name)) {
            (Some(asked), _) => Some(asked),
            (None, Some(text)) => Some(Asked {
                requests: devices::parse_list(text.split(','))
                    .map_err(|error| VariableError::new(variables::DEVICE.name, error))
                    .map_err(OptionsError::from)?,
                by: devices::By::Environment,
            }),
            (None, None) => None,
        };
        let explain = match (schedule.explain, get(variables::EXPLAIN.name)) {
            (Some(explain), _) => explain,
            (None, Some(text)) => text
                .parse()
                .map_err(|error: String| VariableError::new(variables::EXPLAIN.name, error))
                .map_err(OptionsError::from)?,
            (None, None) => Explain::default(),
        };
        let machine = get(variables::SIM.name).unwrap_or_else(|| devices::DEFAULT_MACHINE.into());
        devices::check_machine(&machine)
            .map_err(|error| VariableError::new(variables::SIM.name, error))
            .map_err(OptionsError::from)?;
        Ok(Self {
            cargo: cargo.clone(),
            selection: Selection {
                filters: select.filters.iter().chain(&libtest.filters).cloned().collect(),
                exact: select.exact || libtest.exact,
                skip: libtest.skip,
                ignored: match (libtest.ignored, libtest.include_ignored) {
                    (_, true) => RunIgnoredFlag::All,
                    (true, false) => RunIgnoredFlag::Only,
                    (false, false) => select.run_ignored,
                },
                partition: part.partition.as_deref().map(Partition::read).transpose()?,
            },
            scheduling: Scheduling {
                threads: threads
                    .map(|text| text.parse().map_err(|_| OptionsError::Threads(text.clone())))
                    .transpose()?,
                fail_fast: schedule.fail_fast,
                no_tests: schedule.no_tests,
                capture: if schedule.no_capture || libtest.no_capture {
                    Capture::Shown
                } else {
                    Capture::Kept
                },
                explain: aim.explain(explain),
                libtest: libtest.passed_on,
                launcher: Launcher::None,
            },
            telling: Telling::read(output, report, get),
            results: results.clone(),
            library_path: library_path(&select.library_path, get),
            mode: mode(ci.ci, ci.no_ci, get, in_ci)?,
            launcher: launcher(schedule.runner.as_deref(), get)?,
            asked,
            machine,
            flags: aim.limits(limits.layer().map_err(OptionsError::from)?),
            environment: variables::layer(get).map_err(OptionsError::from)?,
            levels: levels::from_flags(levels)?,
            config_file: select
                .config_file
                .clone()
                .or_else(|| get(variables::CONFIG_FILE.name).map(PathBuf::from)),
        })
    }

    /// Adds the configuration.
    pub(crate) fn with(
        self,
        configuration: Configuration,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Options, DeviceError> {
        let config = &configuration.config;
        let asked = match self.asked {
            Some(asked) => asked,
            None if !config.devices.is_empty() => {
                for request in &config.devices {
                    devices::check(request)?;
                }
                Asked { requests: config.devices.clone(), by: devices::By::Configuration }
            }
            None => Asked { requests: vec![Request::Auto], by: devices::By::Nobody },
        };
        let rayon_threads = get(variables::RAYON_NUM_THREADS.name).unwrap_or_else(|| {
            config.threads.unwrap_or(memcheck_core::config::DEFAULT_THREADS).to_string()
        });
        let mut levels = config.levels.clone();
        levels.extend(self.levels);
        Ok(Options {
            cargo: self.cargo,
            selection: self.selection,
            scheduling: Scheduling {
                launcher: self.launcher.or(configuration.launcher.clone()).unwrap_or_default(),
                ..self.scheduling
            },
            telling: self.telling,
            results: self.results,
            search: Search::new(self.library_path),
            mode: self.mode,
            asked,
            machine: self.machine,
            flags: self.flags,
            environment: self.environment,
            levels: Levels::new(levels, self.mode),
            configuration,
            rayon_threads,
        })
    }
}

/// The folders that flags name, and those that the variable does. Tests are
/// started elsewhere, so they are absolute.
fn library_path(flags: &[PathBuf], get: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let variable = get(variables::LIBRARY_PATH.name).unwrap_or_default();
    let flags = flags.iter().flat_map(std::env::split_paths);
    let named = flags.chain(std::env::split_paths(&variable));
    named.filter_map(|folder| std::path::absolute(folder).ok()).collect()
}

/// What flag or variable say of who starts test processes.
fn launcher(
    flag: Option<&str>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Launcher>, OptionsError> {
    let folder = std::env::current_dir().unwrap_or_default();
    if let Some(text) = flag {
        return Launcher::read(text, &folder).map(Some).map_err(OptionsError::Launcher);
    }
    get(variables::RUNNER.name)
        .map(|text| Launcher::read(&text, &folder))
        .transpose()
        .map_err(|error| VariableError::new(variables::RUNNER.name, error).into())
}

fn mode(
    ci: bool,
    no_ci: bool,
    get: &dyn Fn(&str) -> Option<String>,
    in_ci: bool,
) -> Result<Mode, OptionsError> {
    let on = match (ci, no_ci, get(variables::CI.name).as_deref()) {
        (true, _, _) => true,
        (_, true, _) => false,
        (_, _, Some("true" | "1")) => true,
        (_, _, Some("false" | "0")) => false,
        (_, _, Some(other)) => {
            let why = format!("`{other}` is neither true nor false");
            return Err(VariableError::new(variables::CI.name, why).into());
        }
        (_, _, None) => in_ci,
    };
    Ok(if on { Mode::Ci } else { Mode::Local })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(variables: &[(&str, &str)], args: RunArgs) -> Result<Typed, Failure> {
        let get = |name: &str| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        Typed::read(&args, Aim::Run, &get, false)
    }

    #[test]
    fn a_profile_follows_every_block_and_has_no_baseline() {
        let mut args = RunArgs::default();
        args.schedule.explain = Some(Explain::Never);
        for (aim, explain, baseline) in
            [(Aim::Run, Explain::Never, None), (Aim::Profile, Explain::Always, Some(false))]
        {
            let typed = Typed::read(&args, aim, &|_: &str| None, false).unwrap();
            assert_eq!((typed.scheduling.explain, typed.flags.baseline), (explain, baseline));
        }
    }

    #[test]
    fn a_flag_is_stronger_than_the_environment_and_that_than_the_configuration() {
        let none = |_: &str| None;
        let configuration = || Configuration::from_text("device = \"cpu\"").unwrap();
        let by = |variables: &[(&str, &str)], device: &[&str]| {
            let mut args = RunArgs::default();
            args.select.device = device.iter().map(|&text| text.to_owned()).collect();
            let options = typed(variables, args).unwrap().with(configuration(), &none).unwrap();
            options.asked.requests.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(by(&[], &[]), ["cpu"]);
        assert_eq!(by(&[("MEMCHECK_DEVICE", "sim,cpu")], &[]), ["sim", "cpu"]);
        assert_eq!(by(&[("MEMCHECK_DEVICE", "sim")], &["sim:t4"]), ["sim:t4"]);
    }

    #[test]
    fn a_runner_can_be_said_by_all_and_taken_back_by_a_flag() {
        let by = |variables: &[(&str, &str)], flag: Option<&str>| {
            let mut args = RunArgs::default();
            args.schedule.runner = flag.map(str::to_owned);
            let of_file = Launcher::Command(vec!["c".to_owned()]);
            let configuration =
                Configuration { launcher: Some(of_file), ..Configuration::default() };
            let options = typed(variables, args).unwrap().with(configuration, &|_: &str| None);
            options.unwrap().scheduling.launcher
        };
        let command = |word: &str| Launcher::Command(vec![word.to_owned()]);
        assert_eq!(by(&[], None), command("c"));
        assert_eq!(by(&[("MEMCHECK_RUNNER", "b")], None), command("b"));
        assert_eq!(by(&[("MEMCHECK_RUNNER", "b")], Some("a")), command("a"));
        assert_eq!(by(&[("MEMCHECK_RUNNER", "b")], Some("")), Launcher::None);
    }

    #[test]
    fn ci_is_detected_and_can_be_said_either_way() {
        let none = |_: &str| None;
        let said = |text: &'static str| move |_: &str| Some(text.to_owned());
        assert_eq!(mode(false, false, &none, true).unwrap(), Mode::Ci);
        assert_eq!(mode(false, true, &said("true"), true).unwrap(), Mode::Local);
        assert_eq!(mode(true, false, &said("false"), false).unwrap(), Mode::Ci);
        assert_eq!(mode(false, false, &said("true"), false).unwrap(), Mode::Ci);
        assert!(mode(false, false, &said("maybe"), false).is_err());
    }

    #[test]
    fn flags_that_make_no_sense_are_usage_errors() {
        let wrong: [fn(&mut RunArgs); 6] = [
            |args| args.part.partition = Some("hash:3/2".to_owned()),
            |args| args.select.device = vec!["sim:toaster".to_owned()],
            |args| args.schedule.test_threads = Some("0".to_owned()),
            |args| args.schedule.runner = Some("srun 'a".to_owned()),
            |args| args.limits.iterations = Some(0),
            |args| {
                args.levels.0 = vec![("leak".to_owned(), memcheck_core::finding::Level::Allow)];
            },
        ];
        for change in wrong {
            let mut args = RunArgs::default();
            change(&mut args);
            assert_eq!(typed(&[], args).unwrap_err().exit_code(), exit::USAGE);
        }
    }
}
