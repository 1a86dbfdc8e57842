//! Flags, environment and configuration, resolved once into [`Options`]. An invalid command line is
//! refused before the command reads files: [`Typed`] needs only flags and environment, [`Options`]
//! also needs the configuration.

mod baselines;
mod error;
mod flags;
mod levels;
mod mode;
mod package_features;
mod partition;
mod reporting;
mod typed;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use memcheck_core::limits::Layer;
use memcheck_core::request::variables::{self, Variable, VariableError};
use memcheck_core::runs::plan::Explain;

use crate::invocation::config::Configuration;
use crate::invocation::devices::RequestedDevices;
use crate::invocation::values::{CargoOptions, HistoryPlace, NoTests, RunIgnored, Verbosity};
use crate::system::launcher::Launcher;
use crate::system::libraries::LibrarySearch;
use crate::system::process::Capture;

pub(crate) use baselines::{baselines, baselines_flag};
pub(crate) use error::OptionsError;
pub(crate) use flags::Flags;
pub(crate) use levels::Levels;
pub(crate) use mode::Mode;
pub(crate) use package_features::{FeatureChoice, PackageFeatures};
pub(crate) use partition::{Partition, hash};
pub(crate) use reporting::{Annotations, Pending, ReportContext, ReportingOptions};
pub(crate) use typed::Typed;

#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) filters: Vec<String>,
    pub(crate) exact: bool,
    pub(crate) skip: Vec<String>,
    pub(crate) ignored: RunIgnored,
    pub(crate) partition: Option<Partition>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Scheduling {
    /// `None`: as many as the device and the cores allow.
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) fail_fast: bool,
    pub(crate) no_tests: NoTests,
    pub(crate) capture: Capture,
    /// The live memory of a test or program is shown while it runs.
    pub(crate) live: bool,
    pub(crate) explain: Explain,
    /// The runs are compared with each other.
    pub(crate) repeat: Option<NonZeroU32>,
    /// Time of the additional run that looks for late and rare leaks.
    pub(crate) soak: Option<Duration>,
    pub(crate) libtest: Vec<String>,
    pub(crate) launcher: Launcher,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) cargo: CargoOptions,
    pub(crate) package_features: PackageFeatures,
    pub(crate) selection: Selection,
    pub(crate) scheduling: Scheduling,
    pub(crate) reporting: ReportingOptions,
    pub(crate) results: Option<PathBuf>,
    pub(crate) own_pending: bool,
    /// Relative to the workspace. `None` if they are next to the tests.
    pub(crate) baselines: Option<PathBuf>,
    pub(crate) history: Option<HistoryPlace>,
    pub(crate) search: LibrarySearch,
    pub(crate) mode: Mode,
    pub(crate) requested: RequestedDevices,
    /// For a device that does not name one.
    pub(crate) machine: String,
    pub(crate) flags: Layer,
    pub(crate) environment: Layer,
    pub(crate) levels: Levels,
    pub(crate) configuration: Configuration,
    /// The value of `RAYON_NUM_THREADS` for tests.
    pub(crate) rayon_threads: String,
}

impl Options {
    /// True if no flag leaves out tests of the workspace.
    pub(crate) fn selects_all(&self) -> bool {
        let Selection { filters, exact: _, skip, ignored: _, partition } = &self.selection;
        let CargoOptions { packages, exclude, .. } = &self.cargo;
        filters.is_empty()
            && skip.is_empty()
            && partition.is_none()
            && packages.is_empty()
            && exclude.is_empty()
            && !self.cargo.names_targets()
    }

    /// False if the user has asked for silence about tests that are not there.
    pub(crate) fn warns_about_filters(&self) -> bool {
        self.reporting.verbosity > Verbosity::Quiet && self.scheduling.no_tests != NoTests::Pass
    }
}

/// A mistyped name, and a value that is not UTF-8, would otherwise be taken for an unset variable.
pub(crate) fn check_environment() -> Result<(), OptionsError> {
    variables::check_names(std::env::vars_os())?;
    let broken = |name| matches!(std::env::var(name), Err(std::env::VarError::NotUnicode(_)));
    match variables::all().find(|variable| broken(variable.name)) {
        Some(Variable { name, .. }) => Err(VariableError::new(name, "it is not UTF-8").into()),
        None => Ok(()),
    }
}

/// An empty variable counts as unset.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
