//! The options from flags and environment, before the configuration is read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use memcheck_core::device::Request;
use memcheck_core::judgement::finding::Code;
use memcheck_core::limits::Layer;
use memcheck_core::request::variables::{self, VariableError};
use memcheck_core::runs::explain::Explain;

use super::{
    Aim, Capture, Levels, Mode, Options, OptionsError, Partition, Scheduling, Selection, Telling,
    levels,
};
use crate::cli::{CargoFlags, LibtestArgs, LibtestError, RunArgs, RunIgnoredFlag, ScheduleFlags};
use crate::config::Configuration;
use crate::devices::{self, Asked, DeviceError};
use crate::error::Failure;
use crate::launcher::Launcher;
use crate::libraries::Search;

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
    levels: BTreeMap<Code, memcheck_core::judgement::finding::Level>,
    /// The configuration file, if a flag or a variable names one.
    pub(crate) config_file: Option<PathBuf>,
}

impl Typed {
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
        let asked = asked(&select.device, get)?;
        let repeat = repeat(schedule)?;
        let explain = aim.explain(explain(schedule.explain, get)?);
        let explain = if repeat.is_some() { Explain::Never } else { explain };
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
                explain,
                repeat,
                libtest: libtest.passed_on,
                launcher: Launcher::None,
            },
            telling: Telling::read(output, report, get),
            results: results.clone(),
            library_path: library_path(&select.library_path, get),
            mode: Mode::read(ci, get, in_ci)?,
            launcher: launcher(schedule.runner.as_deref(), get)?,
            asked,
            machine,
            flags: aim.limits(limits.layer()),
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
            config.threads.unwrap_or(memcheck_core::request::config::DEFAULT_THREADS).to_string()
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

/// Returns the devices that the flag or else the variable requests.
fn asked(
    devices: &[String],
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Asked>, Failure> {
    let flagged = (!devices.is_empty())
        .then(|| devices::parse_list(devices.iter().map(String::as_str)))
        .transpose()?
        .map(|requests| Asked { requests, by: devices::By::Flag });
    Ok(match (flagged, get(variables::DEVICE.name)) {
        (Some(asked), _) => Some(asked),
        (None, Some(text)) => Some(Asked {
            requests: devices::parse_list(text.split(','))
                .map_err(|error| VariableError::new(variables::DEVICE.name, error))
                .map_err(OptionsError::from)?,
            by: devices::By::Environment,
        }),
        (None, None) => None,
    })
}

/// Returns when tests run with call stacks. The flag takes precedence over the variable.
fn explain(
    flag: Option<Explain>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Explain, OptionsError> {
    Ok(match (flag, get(variables::EXPLAIN.name)) {
        (Some(explain), _) => explain,
        (None, Some(text)) => text
            .parse()
            .map_err(|error: String| VariableError::new(variables::EXPLAIN.name, error))?,
        (None, None) => Explain::default(),
    })
}

/// Returns the number of runs of each test, if `--repeat` requests one.
fn repeat(flags: &ScheduleFlags) -> Result<Option<NonZeroU32>, OptionsError> {
    let Some(text) = &flags.repeat else { return Ok(None) };
    let times = text.parse().map_err(|_| OptionsError::Repeat(text.clone()))?;
    match flags.explain {
        None | Some(Explain::Never) => Ok(Some(times)),
        Some(Explain::Failed | Explain::Always) => Err(OptionsError::RepeatExplains),
    }
}

/// Returns the folders of the flags, followed by the folders of the variable. The paths are absolute because tests start in other folders.
fn library_path(flags: &[PathBuf], get: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let variable = get(variables::LIBRARY_PATH.name).unwrap_or_default();
    let flags = flags.iter().flat_map(std::env::split_paths);
    let named = flags.chain(std::env::split_paths(&variable));
    named.filter_map(|folder| std::path::absolute(folder).ok()).collect()
}

/// Returns the launcher of test processes. The flag takes precedence over the variable.
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

#[cfg(test)]
mod tests {
    use memcheck_core::wire::exit;

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
    fn repeats_are_runs_without_call_sites() {
        let mut args = RunArgs::default();
        args.schedule.repeat = Some("30".to_owned());
        for variables in [&[][..], &[("MEMCHECK_EXPLAIN", "always")]] {
            let scheduling = typed(variables, args.clone()).unwrap().scheduling;
            assert_eq!(scheduling.repeat.map(NonZeroU32::get), Some(30));
            assert_eq!(scheduling.explain, Explain::Never);
        }
    }

    #[test]
    fn flags_that_make_no_sense_are_usage_errors() {
        let wrong: [fn(&mut RunArgs); 8] = [
            |args| args.part.partition = Some("hash:3/2".to_owned()),
            |args| args.select.device = vec!["sim:toaster".to_owned()],
            |args| args.schedule.test_threads = Some("0".to_owned()),
            |args| args.schedule.repeat = Some("0".to_owned()),
            |args| args.schedule.repeat = Some("often".to_owned()),
            |args| {
                args.schedule.repeat = Some("3".to_owned());
                args.schedule.explain = Some(Explain::Always);
            },
            |args| args.schedule.runner = Some("srun 'a".to_owned()),
            |args| {
                args.levels.0 =
                    vec![("leak".to_owned(), memcheck_core::judgement::finding::Level::Allow)];
            },
        ];
        for change in wrong {
            let mut args = RunArgs::default();
            change(&mut args);
            assert_eq!(typed(&[], args).unwrap_err().exit_code(), exit::USAGE);
        }
    }
}
