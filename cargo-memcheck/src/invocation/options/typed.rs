//! The options from flags and environment, before the configuration is read.

use std::path::PathBuf;

use memcheck_core::device::Request;
use memcheck_core::limits::Layer;
use memcheck_core::request::variables;

use super::{
    FeatureChoice, Flags, Levels, Mode, Options, OptionsError, PackageFeatures, ReportingOptions,
    Scheduling, baselines, package_features,
};
use crate::invocation::config::Configuration;
use crate::invocation::devices::{self, DeviceError, DeviceSource, RequestedDevices, parse_list};
use crate::invocation::values::CargoOptions;
use crate::system::launcher::Launcher;
use crate::system::libraries::LibrarySearch;

#[derive(Debug, Clone)]
pub(crate) struct Typed {
    /// Variables replace those that are not set.
    pub(crate) flags: Flags,
    reporting: ReportingOptions,
    mode: Mode,
    machine: String,
    environment: Layer,
    baselines: Option<PathBuf>,
    features_of_gpu: Option<FeatureChoice>,
}

impl Typed {
    pub(crate) fn read(
        mut flags: Flags,
        get: &dyn Fn(&str) -> Option<String>,
        in_ci: bool,
    ) -> Result<Self, OptionsError> {
        if flags.archive.archive_file.is_some() && flags.cargo != CargoOptions::default() {
            return Err(OptionsError::Built);
        }
        if flags.requested.is_none() {
            let requests =
                variables::parse(get, variables::DEVICE.name, |text| parse_list(text.split(',')))?;
            flags.requested = requests
                .map(|requests| RequestedDevices { requests, by: DeviceSource::Environment });
        }
        if flags.explain.is_none() {
            flags.explain = variables::parse(get, variables::EXPLAIN.name, str::parse)?;
        }
        flags.scheduling.explain = flags.required_explain.or(flags.explain).unwrap_or_default();
        if flags.launcher.is_none() {
            let folder = std::env::current_dir().unwrap_or_default();
            flags.launcher = variables::parse(get, variables::RUNNER.name, |text| {
                Launcher::read(text, &folder)
            })?;
        }
        let machine = |text: &str| devices::check_machine(text).map(|()| text.to_owned());
        let machine = variables::parse(get, variables::SIM.name, machine)?;
        let folders = get(variables::LIBRARY_PATH.name).unwrap_or_default();
        flags.library_path.extend(std::env::split_paths(&folders));
        let named = || get(variables::CONFIG_FILE.name).map(PathBuf::from);
        flags.config_file = flags.config_file.or_else(named);
        Ok(Self {
            reporting: ReportingOptions::read(&flags.output, &flags.reports, get),
            mode: Mode::read(&flags.ci, get, in_ci)?,
            environment: variables::layer(get)?,
            baselines: baselines::named(&flags.baselines, get),
            features_of_gpu: package_features::of_gpu(&flags.cargo, get)?,
            machine: machine.unwrap_or_else(|| devices::DEFAULT_MACHINE.to_owned()),
            flags,
        })
    }

    pub(crate) fn with_configuration(
        self,
        configuration: Configuration,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Options, DeviceError> {
        let Self { flags, reporting, mode, machine, environment, baselines, features_of_gpu } =
            self;
        // Tests start in other folders.
        let absolute = |folder| std::path::absolute(folder).ok();
        let library_path = flags.library_path.into_iter().filter_map(absolute).collect();
        let config = &configuration.config;
        let requested = match flags.requested {
            Some(requested) => requested,
            None if !config.devices.is_empty() => {
                for request in &config.devices {
                    devices::check(request)?;
                }
                RequestedDevices {
                    requests: config.devices.clone(),
                    by: DeviceSource::Configuration,
                }
            }
            None => RequestedDevices { requests: vec![Request::Auto], by: DeviceSource::Default },
        };
        let rayon_threads = get(variables::RAYON_NUM_THREADS.name).unwrap_or_else(|| {
            config.threads.unwrap_or(memcheck_core::request::config::DEFAULT_THREADS).to_string()
        });
        // Those of an archive are in it, at the places of their sources.
        let is_built_here = flags.archive.archive_file.is_none();
        let of_file = || config.baselines.clone().filter(|_| is_built_here);
        let baselines = baselines.or_else(of_file);
        let mut levels = config.levels.clone();
        levels.extend(flags.levels);
        Ok(Options {
            cargo: flags.cargo,
            package_features: PackageFeatures::new(features_of_gpu, config),
            selection: flags.selection,
            scheduling: Scheduling {
                launcher: flags.launcher.or(configuration.launcher.clone()).unwrap_or_default(),
                ..flags.scheduling
            },
            reporting,
            results: flags.results,
            own_pending: flags.own_pending,
            baselines,
            history: flags.history,
            search: LibrarySearch::new(library_path),
            mode,
            requested,
            machine,
            flags: flags.limits,
            environment,
            levels: Levels::new(levels, mode),
            configuration,
            rayon_threads,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use memcheck_core::runs::plan::Explain;

    use super::*;
    use crate::invocation::cli::ScheduleFlags;

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
        assert_eq!(
            explain(Flags { required_explain: Some(Explain::Always), ..flags }),
            Explain::Always
        );
    }

    #[test]
    fn flags_override_variables_and_variables_override_the_configuration() {
        let none = |_: &str| None;
        let configuration = || Configuration::from_text("device = \"cpu\"").unwrap();
        let by = |variables: &[(&str, &str)], device: &[&str]| {
            let device: Vec<String> = device.iter().map(|&text| text.to_owned()).collect();
            let flags = Flags::default().devices(&device).unwrap();
            let options =
                typed(variables, flags).with_configuration(configuration(), &none).unwrap();
            options.requested.requests.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(by(&[], &[]), ["cpu"]);
        assert_eq!(by(&[("MEMCHECK_DEVICE", "sim,cpu")], &[]), ["sim", "cpu"]);
        assert_eq!(by(&[("MEMCHECK_DEVICE", "sim")], &["sim:t4"]), ["sim:t4"]);
    }

    #[test]
    fn a_flag_can_remove_the_runner_of_the_configuration() {
        let by = |variables: &[(&str, &str)], flag: Option<&str>| {
            let flags = Flags::default().runner(flag).unwrap();
            let of_file = Launcher::Command(vec!["c".to_owned()]);
            let configuration =
                Configuration { launcher: Some(of_file), ..Configuration::default() };
            let options =
                typed(variables, flags).with_configuration(configuration, &|_: &str| None);
            options.unwrap().scheduling.launcher
        };
        let command = |word: &str| Launcher::Command(vec![word.to_owned()]);
        assert_eq!(by(&[], None), command("c"));
        assert_eq!(by(&[("MEMCHECK_RUNNER", "b")], None), command("b"));
        assert_eq!(by(&[("MEMCHECK_RUNNER", "b")], Some("a")), command("a"));
        assert_eq!(by(&[("MEMCHECK_RUNNER", "b")], Some("")), Launcher::None);
    }

    #[test]
    fn the_baselines_of_the_configuration_are_not_those_of_an_archive() {
        let by = |archive: Option<&str>, variables: &[(&str, &str)]| {
            let mut flags = Flags::default();
            flags.archive.archive_file = archive.map(PathBuf::from);
            let configuration = Configuration::from_text("baselines = \"kept\"").unwrap();
            let options =
                typed(variables, flags).with_configuration(configuration, &|_: &str| None);
            options.unwrap().baselines
        };
        assert_eq!(by(None, &[]), Some("kept".into()));
        assert_eq!(by(Some("mem.tar.zst"), &[]), None);
        let variable = [("MEMCHECK_BASELINES", "other")];
        assert_eq!(by(Some("mem.tar.zst"), &variable), Some("other".into()));
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
