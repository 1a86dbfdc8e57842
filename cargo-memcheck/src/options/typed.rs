//! The options from flags and environment, before the configuration is read.

use std::path::{Path, PathBuf};

use memcheck_core::device::Request;
use memcheck_core::explain::Explain;
use memcheck_core::limits::Layer;
use memcheck_core::variables::{self, VariableError};

use super::{Flags, Levels, Mode, Options, OptionsError, Scheduling, Telling};
use crate::config::Configuration;
use crate::devices::{self, Asked, DeviceError};
use crate::error::Failure;
use crate::launcher::Launcher;
use crate::libraries::Search;

#[derive(Debug, Clone)]
pub(crate) struct Typed {
    /// The flags. Variables replace those that are not set.
    pub(crate) flags: Flags,
    telling: Telling,
    mode: Mode,
    machine: String,
    environment: Layer,
}

impl Typed {
    pub(crate) fn read(
        mut flags: Flags,
        get: &dyn Fn(&str) -> Option<String>,
        in_ci: bool,
    ) -> Result<Self, Failure> {
        flags.asked = asked(flags.asked, get)?;
        let explain = explain(flags.explain, get)?;
        flags.scheduling.explain = flags.required_explain.unwrap_or(explain);
        let machine = get(variables::SIM.name).unwrap_or_else(|| devices::DEFAULT_MACHINE.into());
        devices::check_machine(&machine)
            .map_err(|error| VariableError::new(variables::SIM.name, error))
            .map_err(OptionsError::from)?;
        flags.library_path.extend(library_path(get));
        flags.launcher = launcher(flags.launcher, get)?;
        let of_variable = || get(variables::CONFIG_FILE.name).map(PathBuf::from);
        flags.config_file = flags.config_file.or_else(of_variable);
        Ok(Self {
            telling: Telling::read(&flags.output, &flags.reports, get),
            mode: Mode::read(&flags.ci, get, in_ci)?,
            environment: variables::layer(get).map_err(OptionsError::from)?,
            machine,
            flags,
        })
    }

    /// The configuration file, if a flag or a variable names one.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.flags.config_file.as_deref()
    }

    /// Adds the configuration.
    pub(crate) fn with(
        self,
        configuration: Configuration,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Options, DeviceError> {
        let Self { flags, telling, mode, machine, environment } = self;
        let config = &configuration.config;
        let asked = match flags.asked {
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
        levels.extend(flags.levels);
        Ok(Options {
            cargo: flags.cargo,
            selection: flags.selection,
            scheduling: Scheduling {
                launcher: flags.launcher.or(configuration.launcher.clone()).unwrap_or_default(),
                ..flags.scheduling
            },
            telling,
            results: flags.results,
            search: Search::new(flags.library_path),
            mode,
            asked,
            machine,
            flags: flags.limits,
            environment,
            levels: Levels::new(levels, mode),
            configuration,
            rayon_threads,
        })
    }
}

/// Returns the devices that the flag or else the variable requests.
fn asked(
    flag: Option<Asked>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Asked>, OptionsError> {
    Ok(match (flag, get(variables::DEVICE.name)) {
        (Some(asked), _) => Some(asked),
        (None, Some(text)) => Some(Asked {
            requests: devices::parse_list(text.split(','))
                .map_err(|error| VariableError::new(variables::DEVICE.name, error))?,
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

/// Returns the folders of the variable. The paths are absolute because tests start in other folders.
fn library_path(get: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let variable = get(variables::LIBRARY_PATH.name).unwrap_or_default();
    let named = std::env::split_paths(&variable);
    named.filter_map(|folder| std::path::absolute(folder).ok()).collect()
}

/// Returns the launcher of test processes. The flag takes precedence over the variable.
fn launcher(
    flag: Option<Launcher>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Launcher>, OptionsError> {
    let (None, Some(text)) = (&flag, get(variables::RUNNER.name)) else { return Ok(flag) };
    let folder = std::env::current_dir().unwrap_or_default();
    Launcher::read(&text, &folder)
        .map(Some)
        .map_err(|error| VariableError::new(variables::RUNNER.name, error).into())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cli::ScheduleFlags;

    fn typed(variables: &[(&str, &str)], flags: Flags) -> Typed {
        let get = |name: &str| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        Typed::read(flags, &get, false).unwrap()
    }

    #[test]
    fn a_command_can_require_call_stacks() {
        let flags = ScheduleFlags { explain: Some(Explain::Never), ..ScheduleFlags::default() };
        let flags = Flags::default().schedule(&flags).unwrap();
        let explain = |flags| typed(&[], flags).flags.scheduling.explain;
        assert_eq!(explain(flags.clone()), Explain::Never);
        assert_eq!(explain(flags.require_explain(Explain::Always)), Explain::Always);
    }

    #[test]
    fn a_flag_is_stronger_than_the_environment_and_that_than_the_configuration() {
        let none = |_: &str| None;
        let configuration = || Configuration::from_text("device = \"cpu\"").unwrap();
        let by = |variables: &[(&str, &str)], device: &[&str]| {
            let device: Vec<String> = device.iter().map(|&text| text.to_owned()).collect();
            let flags = Flags::default().devices(&device).unwrap();
            let options = typed(variables, flags).with(configuration(), &none).unwrap();
            options.asked.requests.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(by(&[], &[]), ["cpu"]);
        assert_eq!(by(&[("MEMCHECK_DEVICE", "sim,cpu")], &[]), ["sim", "cpu"]);
        assert_eq!(by(&[("MEMCHECK_DEVICE", "sim")], &["sim:t4"]), ["sim:t4"]);
    }

    #[test]
    fn a_runner_can_be_said_by_all_and_taken_back_by_a_flag() {
        let by = |variables: &[(&str, &str)], flag: Option<&str>| {
            let flags = Flags::default().runner(flag).unwrap();
            let of_file = Launcher::Command(vec!["c".to_owned()]);
            let configuration =
                Configuration { launcher: Some(of_file), ..Configuration::default() };
            let options = typed(variables, flags).with(configuration, &|_: &str| None);
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
        let flags = ScheduleFlags { repeat: Some("30".to_owned()), ..ScheduleFlags::default() };
        let flags = Flags::default().schedule(&flags).unwrap();
        for variables in [&[][..], &[("MEMCHECK_EXPLAIN", "always")]] {
            let scheduling = typed(variables, flags.clone()).flags.scheduling;
            assert_eq!(scheduling.repeat.map(NonZeroU32::get), Some(30));
            assert_eq!(scheduling.explain, Explain::Never);
        }
    }
}
