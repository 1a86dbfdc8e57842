//! The folder of the baselines: of the flag, the variable or the configuration, in this order.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::request::variables;

use super::environment;
use crate::invocation::cli::BaselineFlags;
use crate::invocation::config::{Configuration, ConfigurationError};

/// That of the flag, which is relative to the current folder, or of the variable, which is relative
/// to the workspace.
pub(super) fn named(
    flags: &BaselineFlags,
    get: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let here = || std::env::current_dir().unwrap_or_default();
    let flag = flags.baselines.as_ref().map(|folder| here().join(folder));
    flag.or_else(|| get(variables::BASELINES.name).map(PathBuf::from))
}

/// The absolute path, for a command without [`super::Options`]. `None` if they are next to the tests
/// of the workspace in `root`. The configuration is read only if it decides.
pub(crate) fn baselines(
    flags: &BaselineFlags,
    root: &Path,
) -> Result<Option<PathBuf>, ConfigurationError> {
    let folder = match named(flags, &environment) {
        Some(folder) => Some(folder),
        None => {
            let file = environment(variables::CONFIG_FILE.name).map(PathBuf::from);
            Configuration::read(root, root, file.as_deref())?.config.baselines
        }
    };
    let folder = folder.map(|folder| location::absolute(root, &folder));
    Ok(folder.filter(|folder| folder != root))
}

/// The words of the flag for a command that a message names; none if the baselines are next to the
/// tests.
pub(crate) fn baselines_flag(roots: Roots<'_>) -> Vec<String> {
    let words = |folder: &Path| ["--baselines".to_owned(), folder.to_string_lossy().into_owned()];
    roots.elsewhere().map(words).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_overrides_the_variable_and_both_the_configuration() {
        let root = tempfile::tempdir().unwrap();
        let config = root.path().join(memcheck_core::request::config::PATH);
        std::fs::create_dir(config.parent().unwrap()).unwrap();
        let flags = |folder: Option<&str>| BaselineFlags { baselines: folder.map(PathBuf::from) };
        let none = |_: &str| None;
        let variable = |_: &str| Some("../variable".to_owned());
        let here = std::env::current_dir().unwrap();
        assert_eq!(named(&flags(Some("flag")), &variable), Some(here.join("flag")));
        assert_eq!(named(&flags(None), &variable), Some("../variable".into()));
        assert_eq!(named(&flags(None), &none), None);

        let of_root = |flag| baselines(&flags(flag), root.path());
        assert_eq!(of_root(None).unwrap(), None);
        std::fs::write(&config, "baselines = \"kept/../own\"").unwrap();
        assert_eq!(of_root(None).unwrap(), Some(root.path().join("own")));
        let same = root.path().to_str().unwrap();
        assert_eq!(of_root(Some(same)).unwrap(), None, "the workspace is the default");
        std::fs::write(&config, "baselines = 3").unwrap();
        of_root(None).unwrap_err();
        assert_eq!(of_root(Some("/flag")).unwrap(), Some("/flag".into()));
    }
}
