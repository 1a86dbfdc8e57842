//! The source from which a workflow installs the command: that of the runtime, because the two must
//! have the same minor version.

use cargo_metadata::Dependency;

use crate::build::workspace::{CandleSource, web_address};
use crate::invocation::cli::InitArgs;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandSource {
    /// The registry, with a requirement of the version.
    Registry(String),
    /// The address of a repository.
    Git(String),
}

impl CommandSource {
    /// `declared` is the dependency of the package, or of another one of its workspace, on the
    /// runtime. `None` if the runtime is in a folder that is not a clone with a remote `origin`.
    pub(super) fn find(args: &InitArgs, declared: Option<&Dependency>) -> Option<Self> {
        if let Some(url) = &args.git {
            return Some(Self::Git(url.clone()));
        }
        if let Some(CandleSource::Git { url, .. }) = declared.map(CandleSource::declared) {
            return Some(Self::Git(url));
        }
        let folder = declared.and_then(|it| it.path.as_ref()).map(|it| it.as_std_path());
        match (args.path.as_deref().or(folder), declared) {
            (Some(folder), _) => web_address(folder).map(Self::Git),
            (None, Some(declared)) => Some(Self::Registry(declared.req.to_string())),
            // As the dependency that init adds.
            (None, None) => Some(Self::Registry(format!("^{}", env!("CARGO_PKG_VERSION")))),
        }
    }

    /// The arguments of `cargo install` that select the source.
    pub(super) fn arguments(&self) -> String {
        match self {
            Self::Registry(requirement) => format!("--version \"{requirement}\""),
            Self::Git(url) => format!("--git \"{url}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::workspace::git;

    fn declared(source: &str) -> Dependency {
        serde_json::from_value(serde_json::json!({
            "name": "memcheck-runtime", "source": source, "req": "^0.1.2",
            "kind": "dev", "optional": false, "uses_default_features": true, "features": [],
            "target": null,
        }))
        .unwrap()
    }

    #[test]
    fn ci_installs_from_the_address_of_the_flag_the_dependency_or_the_clone() {
        let clone = tempfile::tempdir().unwrap();
        let of_clone = InitArgs { path: Some(clone.path().to_owned()), ..InitArgs::default() };
        git(clone.path(), &["init", "--quiet"]).unwrap();
        assert_eq!(CommandSource::find(&of_clone, None), None, "the clone has no remote");
        git(clone.path(), &["remote", "add", "origin", "git@github.com:o/memcheck.git"]).unwrap();
        let named = InitArgs { git: Some("https://host/m".to_owned()), ..InitArgs::default() };
        let of_git = declared("git+https://host/n?rev=1");
        for (args, declared, url) in [
            (&of_clone, None, "https://github.com/o/memcheck"),
            (&named, None, "https://host/m"),
            (&InitArgs::default(), Some(&of_git), "https://host/n"),
        ] {
            let source = CommandSource::find(args, declared);
            assert_eq!(source, Some(CommandSource::Git(url.to_owned())));
        }
    }

    #[test]
    fn ci_installs_the_version_of_a_dependency_of_the_registry() {
        let of_registry = declared("registry+https://host/index");
        let added = format!("^{}", env!("CARGO_PKG_VERSION"));
        for (declared, requirement) in [(Some(&of_registry), "^0.1.2"), (None, added.as_str())] {
            let source = CommandSource::find(&InitArgs::default(), declared).unwrap();
            assert_eq!(source.arguments(), format!("--version \"{requirement}\""));
        }
    }
}
