//! Decides whether another revision of a workspace can share its target directory. Cargo names the
//! artifacts of a package inside the workspace's folder after its path in it, so that those of both
//! revisions have the same name. The wrapper of rustc for the members of a workspace gives theirs
//! other names (`execution/revision/wrapper`), but not those of other packages in that folder, such as a
//! patched copy of a dependency.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;
use memcheck_core::input;

use super::configuration::{ConfigurationFile, configuration_files};
use crate::invocation::values::CargoOptions;

/// In cargo's configuration these can replace a dependency by a folder.
const REPLACING: [&str; 2] = ["patch", "paths"];

/// True if no package in the folder of the workspace can be built that is not a member. False if
/// this cannot be determined.
pub(super) fn is_separable(metadata: &Metadata, flags: &CargoOptions) -> bool {
    let root = canonical(metadata.workspace_root.as_std_path());
    let members: BTreeSet<PathBuf> = metadata
        .workspace_packages()
        .into_iter()
        .filter_map(|package| package.manifest_path.as_std_path().parent().map(canonical))
        .collect();
    let local = || metadata.packages.iter().filter(|package| package.source.is_none());
    let built = local().filter_map(|package| package.manifest_path.parent());
    // Those that only a feature switches on are declared, but not in the graph.
    let declared = local().flat_map(|package| &package.dependencies);
    let declared = declared.filter_map(|dependency| dependency.path.as_deref());
    let mut folders = built.chain(declared).map(|folder| folder.as_std_path().to_owned());
    let is_apart = |folder: PathBuf| {
        let folder = canonical(&folder);
        !folder.starts_with(&root) || members.contains(&folder)
    };
    let replaces =
        |file: ConfigurationFile| REPLACING.iter().any(|key| file.values.contains_key(*key));
    folders.all(is_apart)
        && patches(&root).is_some_and(|paths| paths.into_iter().all(is_apart))
        && !configuration_files(&env::current_dir().unwrap_or_default(), &root, &flags.config)
            .into_iter()
            .any(replaces)
}

fn canonical(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The folders of the patches in the manifest of the workspace.
fn patches(root: &Path) -> Option<Vec<PathBuf>> {
    let manifest: toml::Table =
        input::read_text(&root.join("Cargo.toml"), input::SOURCE).ok()?.parse().ok()?;
    let patches = ["patch", "replace"].into_iter().filter_map(|key| manifest.get(key));
    Some(patches.flat_map(paths).map(|path| root.join(path)).collect())
}

fn paths(value: &toml::Value) -> Vec<&str> {
    let toml::Value::Table(table) = value else { return Vec::new() };
    let own = table.get("path").and_then(toml::Value::as_str);
    own.into_iter().chain(table.values().flat_map(paths)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A workspace with the member `app`, and further packages.
    fn separable(root: &Path, others: &[&str], declared: Option<&str>) -> bool {
        let package = |folder: &Path| {
            let dependency = |path: &str| {
                json!({
                    "name": "dep", "req": "*", "kind": null, "optional": true, "features": [],
                    "uses_default_features": true, "target": null, "rename": null, "source": null,
                    "path": root.join(path),
                })
            };
            json!({
                "name": "app", "version": "0.1.0", "id": folder, "source": null, "targets": [],
                "manifest_path": folder.join("Cargo.toml"), "features": {},
                "dependencies": declared.map(dependency).into_iter().collect::<Vec<_>>(),
            })
        };
        let member = root.join("app");
        let all = others.iter().map(|path| root.join(path)).chain([member.clone()]);
        let metadata = json!({
            "packages": all.map(|folder| package(&folder)).collect::<Vec<_>>(),
            "workspace_members": [member], "workspace_default_members": [member],
            "workspace_root": root, "resolve": null, "target_directory": root, "version": 1,
        });
        let flags = CargoOptions::default();
        is_separable(&serde_json::from_value(metadata).unwrap(), &flags)
    }

    #[test]
    fn a_package_in_the_folder_that_is_not_a_member_needs_another_directory() {
        let folder = tempfile::tempdir().unwrap();
        let above = std::fs::canonicalize(folder.path()).unwrap();
        let root = above.join("app");
        for name in ["app", "dep", "other"] {
            std::fs::create_dir(above.join(name)).unwrap();
        }
        let manifest = |text: &str| std::fs::write(root.join("Cargo.toml"), text).unwrap();
        manifest("[workspace]\nmembers = [\"app\"]\n");
        assert!(separable(&root, &[], None));
        assert!(separable(&root, &["../dep"], Some("../other")));
        assert!(!separable(&root, &["vendor/dep"], None), "it is built");
        assert!(!separable(&root, &[], Some("vendor/dep")), "a feature can switch it on");
        manifest("[patch.crates-io]\ndep = { path = \"vendor/dep\" }\n");
        assert!(!separable(&root, &[], None), "a patch");
        manifest("[patch.\"https://example.org/dep\"]\ndep = { path = \"../dep\" }\n");
        assert!(separable(&root, &[], None));
        std::fs::create_dir(root.join(".cargo")).unwrap();
        std::fs::write(root.join(".cargo/config.toml"), "paths = [\"vendor/dep\"]\n").unwrap();
        assert!(!separable(&root, &[], None), "the configuration");
        manifest("torn");
        assert!(!separable(&root, &[], None), "it cannot be determined");
    }
}
