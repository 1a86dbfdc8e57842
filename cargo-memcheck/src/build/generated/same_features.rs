//! The dependencies that give a generated package the features of the workspace's tests. Cargo
//! compiles a crate once more for other features, and one feature of a crate like serde_json is
//! enough for candle to be compiled once more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::semver::Version;
use cargo_metadata::{Dependency, DependencyKind, Package};
use serde::Serialize;

use crate::build::workspace::Workspace;

/// Every platform. A table of its own keeps these dependencies apart from those of the package.
const ANYWHERE: &str = "cfg(all())";

/// The tables `target` of a manifest, by platform.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct SameFeatures {
    target: BTreeMap<String, PlatformTables>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct PlatformTables {
    dependencies: BTreeMap<String, Shared>,
    build_dependencies: BTreeMap<String, Shared>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Shared {
    package: String,
    version: String,
    default_features: bool,
    features: BTreeSet<String>,
}

impl SameFeatures {
    /// The published crates on which packages with memory tests depend. None if candle is not built
    /// yet, because the generated package then needs no more crates than its own.
    pub(super) fn of(workspace: &Workspace) -> Self {
        let mut same = Self::default();
        if has_built_candle(workspace.build_directory()) {
            for tests in workspace.test_packages() {
                for (declared, resolved) in workspace.resolved_dependencies(&tests.package) {
                    same.add(declared, resolved);
                }
            }
        }
        same
    }

    fn add(&mut self, declared: &Dependency, resolved: &Package) {
        if !is_shared(declared, resolved) {
            return;
        }
        let platform = declared.target.as_ref().map_or(ANYWHERE.to_owned(), ToString::to_string);
        let tables = self.target.entry(platform).or_default();
        let table = match declared.kind {
            DependencyKind::Build => &mut tables.build_dependencies,
            _ => &mut tables.dependencies,
        };
        let Version { major, minor, patch, pre, .. } = &resolved.version;
        // A package can depend on several versions of a crate, which must have other names.
        let name = format!("{}-{major}-{minor}-{patch}-{}", resolved.name, pre.replace('.', "-"));
        let shared = table.entry(name.trim_end_matches('-').to_owned()).or_insert_with(|| {
            // Cargo warns of a requirement with build metadata.
            let version = Version { build: Default::default(), ..resolved.version.clone() };
            Shared {
                package: resolved.name.to_string(),
                version: format!("={version}"),
                default_features: false,
                features: BTreeSet::new(),
            }
        });
        shared.default_features |= declared.uses_default_features;
        shared.features.extend(declared.features.iter().cloned());
    }
}

fn has_built_candle(build_directory: &Path) -> bool {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is_candle = |name: &str| name.starts_with("libcandle_core-") && name.ends_with(".rlib");
    // `PROFILE/deps`, or `TARGET/PROFILE/deps` if the user names a target.
    let below = |folder: PathBuf| {
        let inner: Vec<_> = entries(&folder).map(|entry| entry.path()).collect();
        std::iter::once(folder).chain(inner)
    };
    entries(build_directory)
        .flat_map(|entry| below(entry.path()))
        .flat_map(|profile| entries(&profile.join("deps")))
        .any(|file| file.file_name().to_str().is_some_and(is_candle))
}

/// The generated package itself chooses the features of candle and of memcheck. It lacks the
/// settings of a registry that a manifest names; the default registry has no name in metadata.
fn is_shared(declared: &Dependency, resolved: &Package) -> bool {
    let source = resolved.source.as_ref();
    let is_published = source.is_some_and(|source| source.repr.starts_with("registry+"));
    let own = ["candle-", "memcheck-"];
    is_published
        && declared.registry.is_none()
        && !own.iter().any(|own| resolved.name.starts_with(own))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PUBLISHED: &str = "registry+https://example.org/index";

    fn declared(kind: Value, default: bool, features: &[&str]) -> Dependency {
        serde_json::from_value(json!({
            "name": "x", "source": PUBLISHED, "req": "^1", "kind": kind, "rename": null,
            "optional": false, "uses_default_features": default, "features": features,
            "target": null, "registry": null,
        }))
        .unwrap()
    }

    fn resolved(name: &str, version: &str, source: Value) -> Package {
        serde_json::from_value(json!({
            "name": name, "version": version, "id": format!("{name}@{version}"), "source": source,
            "manifest_path": "/registry/x/Cargo.toml", "dependencies": [], "targets": [],
            "features": {},
        }))
        .unwrap()
    }

    #[test]
    fn features_of_all_declarations_are_joined_for_each_version() {
        let mut same = SameFeatures::default();
        let (first, second) = ("1.2.0+spec", "2.0.0-rc.1");
        same.add(&declared(Value::Null, false, &["std"]), &resolved("x", first, PUBLISHED.into()));
        same.add(&declared(json!("dev"), true, &["a"]), &resolved("x", first, PUBLISHED.into()));
        same.add(&declared(Value::Null, true, &[]), &resolved("x", second, PUBLISHED.into()));
        same.add(&declared(json!("build"), true, &[]), &resolved("x", first, PUBLISHED.into()));
        let any = declared(Value::Null, true, &[]);
        let git = json!("git+https://example.org/m#abc");
        let others = [("candle-nn", json!(PUBLISHED)), ("local", Value::Null), ("cloned", git)];
        for (name, source) in others {
            same.add(&any, &resolved(name, "1.0.0", source));
        }
        let mut private = any;
        private.registry = Some("https://example.org/own".to_owned());
        same.add(&private, &resolved("y", "1.0.0", PUBLISHED.into()));
        let expected = "\
[target.\"cfg(all())\".dependencies.x-1-2-0]
package = \"x\"
version = \"=1.2.0\"
default-features = true
features = [\"a\", \"std\"]

[target.\"cfg(all())\".dependencies.x-2-0-0-rc-1]
package = \"x\"
version = \"=2.0.0-rc.1\"
default-features = true
features = []

[target.\"cfg(all())\".build-dependencies.x-1-2-0]
package = \"x\"
version = \"=1.2.0\"
default-features = true
features = []
";
        assert_eq!(toml::to_string(&same).unwrap(), expected);
    }

    #[test]
    fn candle_is_built_if_a_profile_has_its_library() {
        for profile in ["debug/deps", "x86_64-unknown-linux-gnu/release/deps"] {
            let folder = tempfile::tempdir().unwrap();
            let deps = folder.path().join(profile);
            fs::create_dir_all(&deps).unwrap();
            fs::write(deps.join("libcandle_nn-0123.rlib"), "").unwrap();
            assert!(!has_built_candle(folder.path()), "{profile}");
            fs::write(deps.join("libcandle_core-0123.rlib"), "").unwrap();
            assert!(has_built_candle(folder.path()), "{profile}");
        }
        assert!(!has_built_candle(Path::new("/no/such/folder")));
    }
}
