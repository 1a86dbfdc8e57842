//! What is meant: flags, environment and configuration, resolved once.
//!
//! In two steps, so that a command line which makes no sense is refused
//! before anything is looked for on disk: [`Typed`] needs flags and
//! environment only, [`Options`] the configuration too.

mod aim;
mod error;
mod levels;
mod mode;
mod partition;
mod telling;
mod typed;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use memcheck_core::explain::Explain;
use memcheck_core::limits::Layer;
use memcheck_core::variables::{self, Variable, VariableError};

use crate::cli::{CargoFlags, NoTestsFlag, RunIgnoredFlag};
use crate::config::Configuration;
use crate::devices::Asked;
use crate::launcher::Launcher;
use crate::libraries::Search;

pub(crate) use aim::Aim;
pub(crate) use error::OptionsError;
pub(crate) use levels::Levels;
pub(crate) use mode::Mode;
pub(crate) use partition::{Partition, hash};
pub(crate) use telling::{Annotations, Audience, Capture, Pending, Telling, Verbosity};
pub(crate) use typed::Typed;

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
    /// How often each test is run and compared with itself, if that is asked for.
    pub(crate) repeat: Option<NonZeroU32>,
    /// Arguments for the test harness.
    pub(crate) libtest: Vec<String>,
    /// Who starts test processes.
    pub(crate) launcher: Launcher,
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

/// Makes sure that no variable of ours is read as unset because it is no text.
///
/// # Errors
/// When one is no UTF-8.
pub(crate) fn environment_is_text() -> Result<(), OptionsError> {
    let broken = |name| matches!(std::env::var(name), Err(std::env::VarError::NotUnicode(_)));
    match variables::all().find(|variable| broken(variable.name)) {
        Some(Variable { name, .. }) => Err(VariableError::new(name, "it is no UTF-8").into()),
        None => Ok(()),
    }
}

/// Reads a variable of the environment; empty is unset.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
