//! The reasons for which an update is refused: those of the lock file, and those of cargo.

use std::path::Path;

use cargo_metadata::semver::Version;
use memcheck_core::wire::exit;

use crate::build::workspace::Workspace;
use crate::execution::lock_file::{LockError, LockedPackages, LockedVersion, NoLocked};
use crate::invocation::suggestion::nearest;
use crate::invocation::values::{CargoOptions, DependencyUpdate};
use crate::system::error::CommandError;

#[derive(Debug, thiserror::Error)]
pub(super) enum UpdateError {
    #[error("Cargo.lock has no package `{name}`")]
    Unknown { name: String, nearest: Option<String> },
    #[error("`{0}` is a package of a folder, which has no versions to choose from")]
    WithoutVersions(String),
    #[error("Cargo.lock has `{name}` {}, and `{update}` is compatible with none of them",
        .versions.join(" and "))]
    Several { name: String, update: String, versions: Vec<String> },
    #[error("cargo cannot update `{update}`\n{why}")]
    Refused { update: String, why: String, required: Vec<String> },
    #[error("cargo cannot complete Cargo.lock\n{0}")]
    Incomplete(String),
    #[error("Cargo.lock of the worktree: {0}")]
    Unreadable(LockError),
    #[error("after the update to `{update}`, Cargo.lock has `{name}` {versions}")]
    NotApplied { update: String, name: String, versions: String },
    #[error("interrupted")]
    Interrupted,
}

impl UpdateError {
    pub(super) fn of(request: &DependencyUpdate, why: NoLocked, locked: &LockedPackages) -> Self {
        let name = request.name.clone();
        match why {
            NoLocked::Unknown => {
                let nearest = nearest(&name, locked.names()).map(str::to_owned);
                Self::Unknown { name, nearest }
            }
            NoLocked::WithoutVersions => Self::WithoutVersions(name),
            NoLocked::Several(versions) => {
                Self::Several { name, update: request.to_string(), versions }
            }
        }
    }
}

impl CommandError for UpdateError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unknown { .. } | Self::WithoutVersions(_) => exit::USAGE,
            Self::Several { .. } | Self::NotApplied { .. } => exit::USAGE,
            Self::Refused { .. } | Self::Incomplete(_) | Self::Unreadable(_) => exit::METADATA,
            Self::Interrupted => exit::INTERRUPTED,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } => {
                nearest.as_ref().map(|it| format!("did you mean `{it}`?"))
            }
            Self::WithoutVersions(_) => {
                Some("`cargo memcheck compare BRANCH` compares a change of its sources".to_owned())
            }
            Self::Several { .. } => {
                Some("a new incompatible version needs a change of Cargo.toml".to_owned())
            }
            Self::Refused { required, .. } if !required.is_empty() => Some(format!(
                "{}: change Cargo.toml in a branch, and compare it with `cargo memcheck compare \
                 BASE`",
                required.join(", and ")
            )),
            Self::Refused { why, .. } if is_conflict(why) => Some(
                "`--update NAME,NAME` updates packages together that need each other's versions"
                    .to_owned(),
            ),
            Self::Refused { .. } | Self::Incomplete(_) | Self::Unreadable(_) => None,
            Self::NotApplied { .. } => Some(
                "the updates exclude each other, or the package is vendored: cargo takes the \
                 version that its folder has"
                    .to_owned(),
            ),
            Self::Interrupted => None,
        }
    }
}

/// True if cargo found no versions that fit together.
fn is_conflict(why: &str) -> bool {
    why.starts_with("error: failed to select a version")
}

/// The packages that need another version, according to a message of cargo.
pub(super) fn requiring(why: &str) -> Vec<LockedVersion> {
    let package = |line: &str| {
        let line = line.trim_start_matches(['.', ' ']);
        let (name, rest) = line.strip_prefix("required by package `")?.split_once(" v")?;
        let version = rest.split([' ', '`']).next()?;
        Some((name.to_owned(), version.to_owned()))
    };
    why.lines().filter_map(package).collect()
}

/// The requirements of the workspace's own packages, if none of them allows the version.
pub(super) fn requirements(
    request: &DependencyUpdate,
    manifest: &Path,
    flags: &[String],
) -> Vec<String> {
    let Some(version) = request.version.as_deref().and_then(|it| Version::parse(it).ok()) else {
        return Vec::new();
    };
    let config = flags.iter().filter_map(|flag| flag.strip_prefix("--config="));
    let options = CargoOptions {
        manifest_path: Some(manifest.to_owned()),
        config: config.map(str::to_owned).collect(),
        ..CargoOptions::default()
    };
    let Ok(workspace) = Workspace::outline(&options) else { return Vec::new() };
    let members = workspace.members();
    let declared: Vec<_> = members
        .iter()
        .flat_map(|member| member.dependencies.iter().map(move |it| (&member.name, it)))
        .filter(|(_, dependency)| dependency.name == request.name)
        .collect();
    if declared.iter().any(|(_, dependency)| dependency.req.matches(&version)) {
        return Vec::new();
    }
    let text = |(member, dependency): &(_, &cargo_metadata::Dependency)| {
        format!("`{member}` requires `{} = \"{}\"`", dependency.name, dependency.req)
    };
    declared.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIRED: &str = "\
error: failed to select a version for the requirement `pool = \"^0.1.2\"`
candidate versions found which didn't match: 0.1.1
location searched: the index of the registry
required by package `ring v1.1.0`
    ... which satisfies dependency `ring = \"^1\"` (locked to 1.1.0) of package `app v0.1.0 (/app)`
";

    #[test]
    fn a_package_that_requires_another_version_is_in_the_way() {
        let ring = ("ring".to_owned(), "1.1.0".to_owned());
        assert_eq!(requiring(REQUIRED), std::slice::from_ref(&ring));
        // The other form of the message.
        let dotted = "error: failed\n    ... required by package `ring v1.1.0 (registry `a`)`\n";
        assert_eq!(requiring(dotted), [ring]);
        assert_eq!(requiring("error: no matching package named `pool` found"), []);
    }

    #[test]
    fn only_a_conflict_has_a_hint_about_several_updates() {
        let refused = |why: &str, required: &[&str]| {
            let required = required.iter().map(|&it| it.to_owned()).collect();
            let update = "ring@1.1.0".to_owned();
            UpdateError::Refused { update, why: why.to_owned(), required }
        };
        let conflict = refused(REQUIRED, &[]);
        assert!(conflict.hint().unwrap().contains("--update NAME,NAME"));
        assert_eq!(conflict.exit_code(), exit::METADATA);
        assert_eq!(refused("error: failed to download", &[]).hint(), None);
        let required = refused(REQUIRED, &["`app` requires `ring = \"^1.0\"`"]);
        assert!(required.hint().unwrap().starts_with("`app` requires `ring = \"^1.0\"`: change"));
    }
}
