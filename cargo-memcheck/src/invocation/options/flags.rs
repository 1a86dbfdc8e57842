//! The flags of a command, before the environment is read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use memcheck_core::judgement::finding::{Code, Level};
use memcheck_core::limits::Layer;
use memcheck_core::limits::kinds::{LimitKind, Time};
use memcheck_core::runs::plan::Explain;

use super::{OptionsError, Partition, Scheduling, Selection};
use crate::invocation::cli::{
    BaselineFlags, CiFlags, LaunchFlags, LevelFlags, LibtestArgs, LibtestError, OutputFlags,
    PartFlags, ReportFlags, ScheduleFlags, SelectFlags,
};
use crate::invocation::devices::{self, DeviceError, Probe, RequestedDevices, Sharing};
use crate::invocation::values::{CargoOptions, HistoryPlace, RunIgnored, UnpackOptions};
use crate::system::error::Failure;
use crate::system::launcher::Launcher;
use crate::system::process::Capture;

/// A method parses one group of flags. Groups that a command does not have keep their defaults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) output: OutputFlags,
    pub(crate) cargo: CargoOptions,
    pub(crate) archive: UnpackOptions,
    pub(crate) selection: Selection,
    pub(crate) requested: Option<RequestedDevices>,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) library_path: Vec<PathBuf>,
    pub(crate) ci: CiFlags,
    /// Without the launcher and the time of runs with call stacks.
    pub(crate) scheduling: Scheduling,
    pub(crate) launcher: Option<Launcher>,
    pub(crate) explain: Option<Explain>,
    /// Regardless of the flag and the variable.
    pub(crate) required_explain: Option<Explain>,
    pub(crate) limits: Layer,
    pub(crate) levels: BTreeMap<Code, Level>,
    pub(crate) reports: ReportFlags,
    pub(crate) results: Option<PathBuf>,
    /// Pending snapshots are written below the results.
    pub(crate) own_pending: bool,
    pub(crate) baselines: BaselineFlags,
    pub(crate) history: Option<HistoryPlace>,
    pub(crate) sharing: Sharing,
    pub(crate) probe: Probe,
}

impl Flags {
    pub(crate) fn new(output: &OutputFlags, cargo: &CargoOptions) -> Self {
        Self { output: output.clone(), cargo: cargo.clone(), ..Self::default() }
    }

    pub(crate) fn select(mut self, flags: &SelectFlags) -> Result<Self, DeviceError> {
        let SelectFlags { filters, exact, run_ignored, device, config_file, library_path } = flags;
        let (filters, ignored) = (filters.clone(), *run_ignored);
        self.selection = Selection { filters, exact: *exact, ignored, ..self.selection };
        self.library_path = library_path.iter().flat_map(std::env::split_paths).collect();
        self.config_file.clone_from(config_file);
        self.devices(device)
    }

    pub(crate) fn devices(mut self, devices: &[String]) -> Result<Self, DeviceError> {
        if !devices.is_empty() {
            let requests = devices::parse_list(devices.iter().map(String::as_str))?;
            self.requested = Some(RequestedDevices { requests, by: devices::DeviceSource::Flag });
        }
        Ok(self)
    }

    pub(crate) fn partition(mut self, flags: &PartFlags) -> Result<Self, OptionsError> {
        let PartFlags { partition } = flags;
        self.selection.partition = partition.as_deref().map(Partition::read).transpose()?;
        Ok(self)
    }

    pub(crate) fn schedule(mut self, flags: &ScheduleFlags) -> Result<Self, OptionsError> {
        let ScheduleFlags {
            runner,
            test_threads,
            explain,
            repeat,
            soak,
            fail_fast,
            no_tests,
            no_capture,
        } = flags;
        if let Some(text) = repeat {
            let times = text.parse().map_err(|_| OptionsError::Repeat(text.clone()))?;
            if let Some(Explain::Failed | Explain::Always) = explain {
                return Err(OptionsError::RepeatExplains);
            }
            self.scheduling.repeat = Some(times);
            self.required_explain = Some(Explain::Never);
        }
        if let Some(text) = soak {
            self.scheduling.soak = Some(Time::parse(text).map_err(OptionsError::Soak)?);
        }
        self.scheduling.fail_fast = *fail_fast;
        self.scheduling.no_tests = *no_tests;
        self.explain = *explain;
        self.threads(test_threads.as_deref())?.show_output(*no_capture).runner(runner.as_deref())
    }

    pub(crate) fn launch(self, flags: &LaunchFlags) -> Result<Self, OptionsError> {
        let LaunchFlags { no_capture, runner } = flags;
        self.show_output(*no_capture).runner(runner.as_deref())
    }

    pub(crate) fn runner(mut self, command: Option<&str>) -> Result<Self, OptionsError> {
        let folder = std::env::current_dir().unwrap_or_default();
        let launcher = command.map(|text| Launcher::read(text, &folder)).transpose();
        self.launcher = launcher.map_err(OptionsError::Launcher)?;
        Ok(self)
    }

    /// The last flag for a code wins.
    pub(crate) fn levels(mut self, LevelFlags(flags): &LevelFlags) -> Result<Self, OptionsError> {
        for (code, level) in flags {
            let code: Code = code.parse()?;
            code.check_level(*level)?;
            self.levels.insert(code, *level);
        }
        Ok(self)
    }

    /// The flags of the command take precedence over the arguments of the test harness.
    pub(crate) fn libtest(mut self, arguments: &[String]) -> Result<Self, Failure> {
        let libtest = LibtestArgs::read(arguments).map_err(|error: LibtestError| error)?;
        let selection = &mut self.selection;
        selection.filters.extend(libtest.filters);
        selection.exact |= libtest.exact;
        selection.skip = libtest.skip;
        selection.ignored = match (libtest.ignored, libtest.include_ignored) {
            (_, true) => RunIgnored::All,
            (true, false) => RunIgnored::Only,
            (false, false) => selection.ignored,
        };
        self.scheduling.libtest = libtest.passed_on;
        Ok(self.threads(libtest.test_threads.as_deref())?.show_output(libtest.no_capture))
    }

    fn threads(mut self, text: Option<&str>) -> Result<Self, OptionsError> {
        if let (None, Some(text)) = (self.scheduling.threads, text) {
            let threads = text.parse().map_err(|_| OptionsError::Threads(text.to_owned()))?;
            self.scheduling.threads = Some(threads);
        }
        Ok(self)
    }

    fn show_output(mut self, on: bool) -> Self {
        if on {
            self.scheduling.capture = Capture::Shown;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::wire::exit;

    use super::*;

    fn schedule(change: fn(&mut ScheduleFlags)) -> Result<Flags, Failure> {
        let mut flags = ScheduleFlags::default();
        change(&mut flags);
        Ok(Flags::default().schedule(&flags)?)
    }

    #[test]
    fn contradicting_flags_are_usage_errors() {
        let part = PartFlags { partition: Some("hash:3/2".to_owned()) };
        let leak = LevelFlags(vec![("leak".to_owned(), Level::Allow)]);
        for wrong in [
            Flags::default().partition(&part).map_err(Failure::from),
            Flags::default().devices(&["sim:toaster".to_owned()]).map_err(Failure::from),
            Flags::default().levels(&leak).map_err(Failure::from),
            schedule(|flags| flags.test_threads = Some("0".to_owned())),
            schedule(|flags| flags.repeat = Some("0".to_owned())),
            schedule(|flags| flags.repeat = Some("often".to_owned())),
            schedule(|flags| flags.soak = Some("long".to_owned())),
            schedule(|flags| {
                flags.repeat = Some("3".to_owned());
                flags.explain = Some(Explain::Always);
            }),
            schedule(|flags| flags.runner = Some("srun 'a".to_owned())),
        ] {
            assert_eq!(wrong.unwrap_err().exit_code(), exit::USAGE);
        }
        let soon = schedule(|flags| flags.soak = Some("soon".to_owned())).unwrap_err().message();
        assert!(soon.starts_with("--soak: `soon` is not a duration"), "{soon}");
    }
}
