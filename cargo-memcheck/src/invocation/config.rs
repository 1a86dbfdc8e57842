//! Finds and reads `.config/memcheck.toml`. `memcheck_core::request::config` defines its keys.

use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::request::config::{Config, ConfigError, PATH};
use memcheck_core::wire::exit;
use serde::{Deserialize, Deserializer};

use crate::system::error::CommandError;
use crate::system::launcher::Launcher;

/// Test processes receive the text, so that both sides resolve limits from the same source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Configuration {
    pub(crate) path: Option<PathBuf>,
    pub(crate) text: Option<String>,
    pub(crate) config: Config,
    pub(crate) launcher: Option<Launcher>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// This includes a missing file that the user named.
    #[error("configuration {path}: {error}", path = .0.display(), error = .1)]
    Unreadable(PathBuf, io::Error),
    #[error("configuration {path}: {error}", path = .0.display(), error = .1)]
    Wrong(PathBuf, ConfigError),
}

impl CommandError for ConfigurationError {
    fn exit_code(&self) -> u8 {
        exit::CONFIG
    }
}

impl Configuration {
    /// A `runner` with a relative path is searched below `sources`.
    pub(crate) fn read(
        workspace_root: &Path,
        sources: &Path,
        named: Option<&Path>,
    ) -> Result<Self, ConfigurationError> {
        let (path, required) = match named {
            Some(path) => (path.to_owned(), true),
            None => (workspace_root.join(PATH), false),
        };
        let text = match input::read_text(&path, input::CONFIGURATION) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => {
                return Ok(Self::default());
            }
            Err(error) => return Err(ConfigurationError::Unreadable(path, error)),
        };
        let config =
            Config::parse(&text).map_err(|error| ConfigurationError::Wrong(path.clone(), error))?;
        let launcher = launcher(&text, sources)
            .map_err(|error| ConfigurationError::Wrong(path.clone(), error.into()))?;
        Ok(Self { path: Some(path), text: Some(text), config, launcher })
    }

    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Result<Self, ConfigError> {
        Ok(Self {
            path: None,
            text: Some(text.to_owned()),
            config: Config::parse(text)?,
            launcher: None,
        })
    }
}

/// Parsed apart, because the core does not know launchers, and only the parser knows an error's
/// line and column.
fn launcher(text: &str, sources: &Path) -> Result<Option<Launcher>, toml::de::Error> {
    #[derive(Deserialize)]
    struct Only {
        #[serde(default)]
        runner: Option<RunnerLine>,
    }
    struct RunnerLine(String);
    impl<'de> Deserialize<'de> for RunnerLine {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let line = String::deserialize(from)?;
            Launcher::read(&line, Path::new("")).map_err(serde::de::Error::custom)?;
            Ok(Self(line))
        }
    }
    let Only { runner } = toml::from_str(text)?;
    let read = |RunnerLine(line)| Launcher::read(&line, sources).map_err(serde::de::Error::custom);
    runner.map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_configuration_that_was_named_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Configuration::read(folder.path(), folder.path(), None).unwrap().text.is_none());
        let missing = folder.path().join("other.toml");
        assert!(Configuration::read(folder.path(), folder.path(), Some(&missing)).is_err());
        std::fs::create_dir(folder.path().join(".config")).unwrap();
        std::fs::write(folder.path().join(PATH), "nonsense = 1").unwrap();
        let error = Configuration::read(folder.path(), folder.path(), None).unwrap_err();
        assert!(error.to_string().contains("memcheck.toml"), "{error}");
        assert_eq!(error.exit_code(), exit::CONFIG);
    }

    #[test]
    fn a_configuration_that_is_not_a_regular_file_or_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(PATH);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        let refused = |expected: &str| {
            let error = Configuration::read(folder.path(), folder.path(), None).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.exit_code(), exit::CONFIG);
            std::fs::remove_file(&file).unwrap();
        };
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        refused(
            "memcheck.toml: it is a character device, and only a regular file of at most 1.00 MiB",
        );
        std::fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
        refused("it has 1.00 TiB, and the most is 1.00 MiB");
    }

    #[test]
    fn a_runner_of_the_configuration_is_relative_to_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memcheck.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Configuration::read(folder.path(), folder.path(), Some(&file))
        };
        let launcher = read("runner = \"ci/on-gpu -n 1\"").unwrap().launcher.unwrap();
        let command = launcher.command(Path::new("/mem"));
        assert_eq!(command.get_program(), folder.path().join("ci/on-gpu"));
        let error = read("runner = \"srun 'a\"").unwrap_err();
        for part in ["line 1, column 10", "a quote or a backslash is left open"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(error.exit_code(), exit::CONFIG);
    }
}
