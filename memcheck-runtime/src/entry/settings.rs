//! Settings from the environment and the workspace. They are read once, at the edge of the crate.

use std::path::{Path, PathBuf};

use memcheck_core::device::{Family, Request};
use memcheck_core::input;
use memcheck_core::judgement::location;
use memcheck_core::limits::{Layer, Limits};
use memcheck_core::request::config::{self, Config, Subject};
use memcheck_core::request::variables::{self, UnknownVariable, VariableError};
use memcheck_core::runs::plan::Explain;

use crate::description::Description;

/// The reason why a test cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The configuration file cannot be read.
    #[error("{path}: {error}")]
    ConfigFile {
        /// The path of the file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The configuration is invalid.
    #[error("{path}: {error}")]
    Config {
        /// The path of the file.
        path: String,
        /// The error in it.
        error: config::ConfigError,
    },
    #[error(transparent)]
    Variable(#[from] VariableError),
    #[error("{0}\nhint: {hint}", hint = .0.hint())]
    UnknownVariable(#[from] UnknownVariable),
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A mistyped name would otherwise be taken for an unset variable.
pub(crate) fn check_names() -> Result<(), SettingsError> {
    Ok(variables::check_names(std::env::vars_os())?)
}

/// Reads the configuration of the workspace; a file that is absent is an empty one.
pub(crate) fn configuration(workspace: &Path) -> Result<Config, SettingsError> {
    let named = variable(variables::CONFIG_FILE.name);
    let path = named.as_ref().map_or_else(|| workspace.join(config::PATH), |path| path.into());
    let text = match input::read_text(&path, input::CONFIGURATION) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return Ok(Config::default());
        }
        Err(error) => {
            let path = path.display().to_string();
            return Err(SettingsError::ConfigFile { path, error });
        }
    };
    Config::parse(&text)
        .map_err(|error| SettingsError::Config { path: config::PATH.to_owned(), error })
}

/// The folder of the baselines if they are not next to their sources.
pub(crate) fn baselines(workspace: &Path, config: &Config) -> Option<PathBuf> {
    let named = variable(variables::BASELINES.name).map(PathBuf::from);
    let folder = named.or_else(|| config.baselines.clone())?;
    Some(location::absolute(workspace, &folder))
}

/// True if bookkeeping is judged as in CI.
pub(crate) fn ci() -> Result<bool, VariableError> {
    Ok(variables::ci(variable)?.unwrap_or_else(is_ci::cached))
}

/// The rule that selects the tests that are run with attribution.
pub(crate) fn explain() -> Result<Explain, VariableError> {
    Ok(variables::parse(variable, variables::EXPLAIN.name, str::parse)?.unwrap_or_default())
}

/// The device of a test without a command: the device that the environment names, or the device
/// that this binary was built for.
pub(crate) fn device() -> Result<Request, VariableError> {
    // A plain harness runs one leg only.
    let first = |text: &str| text.split(',').next().unwrap_or_default().parse();
    let asked = variables::parse(variable, variables::DEVICE.name, first)?;
    Ok(match asked.unwrap_or(Request::Auto) {
        Request::Auto if cfg!(feature = "sim") => Request::Sim(machine(None)),
        Request::Auto if cfg!(feature = "cuda") => Request::Cuda(None),
        Request::Auto => Request::Cpu,
        Request::Sim(named) => Request::Sim(machine(named)),
        other => other,
    })
}

fn machine(named: Option<String>) -> Option<String> {
    named.or_else(|| variable(variables::SIM.name)).or_else(|| Some("h200".to_owned()))
}

/// The resolved limits of a test.
pub(crate) fn limits(
    description: &Description,
    family: Family,
    config: &Config,
) -> Result<Limits, SettingsError> {
    let environment = variables::layer(variable)?;
    let path = description.path();
    let subject = Subject { package: description.package, test: &path, family };
    Ok(config.limits(subject, &(description.limits)(), &environment, &Layer::default()))
}

/// The number of threads of rayon's pool, computed as rayon's default is.
pub(crate) fn threads() -> u32 {
    variable(variables::RAYON_NUM_THREADS.name)
        .and_then(|text| text.parse().ok())
        .filter(|&threads| threads > 0)
        .or_else(|| {
            std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok())
        })
        .unwrap_or(1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_without_an_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(config::PATH);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let error = configuration(folder.path()).unwrap_err().to_string();
        assert!(error.contains("memcheck.toml: it is a character device"), "{error}");
    }
}
