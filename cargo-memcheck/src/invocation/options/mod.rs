//! Flags, environment and configuration, resolved once into [`Options`].
//!
//! The resolution has two steps, so that an invalid command line is refused before the command reads files: [`Typed`] needs only flags and
//! environment, [`Options`] also needs the configuration.

mod error;
mod flags;
mod levels;
mod mode;
mod partition;
mod reporting;
mod typed;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use memcheck_core::limits::Layer;
use memcheck_core::request::variables::{self, Variable, VariableError};
use memcheck_core::runs::explain::Explain;

use crate::invocation::config::Configuration;
use crate::invocation::devices::RequestedDevices;
use crate::invocation::values::{CargoOptions, NoTests, RunIgnored};
use crate::system::launcher::Launcher;
use crate::system::libraries::LibrarySearch;
use crate::system::process::Capture;

pub(crate) use error::OptionsError;
pub(crate) use flags::Flags;
pub(crate) use levels::Levels;
pub(crate) use mode::Mode;
pub(crate) use partition::{Partition, hash};
pub(crate) use reporting::{Annotations, Pending, ReportContext, ReportingOptions};
pub(crate) use typed::Typed;

/// The selection of tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// Substrings of the tests' paths, or whole paths.
    pub(crate) filters: Vec<String>,
    /// True if the filters must match whole paths.
    pub(crate) exact: bool,
    /// Substrings of the tests to leave out.
    pub(crate) skip: Vec<String>,
    /// How to treat `#[ignore]`.
    pub(crate) ignored: RunIgnored,
    /// The part of the tests to which the run is restricted.
    pub(crate) partition: Option<Partition>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Scheduling {
    /// The number of tests that run at the same time. `None`: as many as the device and the cores allow.
    pub(crate) threads: Option<NonZeroUsize>,
    /// True if the first failure ends the run.
    pub(crate) fail_fast: bool,
    /// The result of a run in which no test is selected.
    pub(crate) no_tests: NoTests,
    /// How to treat the output of tests.
    pub(crate) capture: Capture,
    /// When tests run with call stacks.
    pub(crate) explain: Explain,
    /// The number of runs of each test, if the command should compare them with each other.
    pub(crate) repeat: Option<NonZeroU32>,
    /// Further arguments of the test harness.
    pub(crate) libtest: Vec<String>,
    /// The launcher that starts test processes.
    pub(crate) launcher: Launcher,
}

/// The resolved options of a run.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) cargo: CargoOptions,
    pub(crate) selection: Selection,
    pub(crate) scheduling: Scheduling,
    /// How results are reported.
    pub(crate) reporting: ReportingOptions,
    /// The folder for results, if one is requested.
    pub(crate) results: Option<PathBuf>,
    /// The folders with shared libraries.
    pub(crate) search: LibrarySearch,
    /// Whether the command may write to the source tree.
    pub(crate) mode: Mode,
    /// The requested devices, and the source of the request.
    pub(crate) requested: RequestedDevices,
    /// The simulated machine of a device that does not name one.
    pub(crate) machine: String,
    /// The limits of the command line.
    pub(crate) flags: Layer,
    /// The limits of the environment.
    pub(crate) environment: Layer,
    /// The levels of bookkeeping findings.
    pub(crate) levels: Levels,
    pub(crate) configuration: Configuration,
    /// The value of `RAYON_NUM_THREADS` for tests.
    pub(crate) rayon_threads: String,
}

/// Makes sure that all variables of the tool are valid UTF-8. An invalid one would otherwise be taken for an unset one.
///
/// # Errors
/// If the value of a variable is not UTF-8.
pub(crate) fn environment_is_text() -> Result<(), OptionsError> {
    let broken = |name| matches!(std::env::var(name), Err(std::env::VarError::NotUnicode(_)));
    match variables::all().find(|variable| broken(variable.name)) {
        Some(Variable { name, .. }) => Err(VariableError::new(name, "it is not UTF-8").into()),
        None => Ok(()),
    }
}

/// Reads a variable of the environment. An empty variable counts as unset.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
