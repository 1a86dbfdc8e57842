//! cudarc in the dependency graph: whether candle's `cuda` is always on, and other copies of cudarc
//! than candle's, whose calls memcheck counts in part or not at all.

use cargo_metadata::Package;
use memcheck_core::measurement::cargo_lock::CANDLE;

use super::{TestPackage, Workspace};

pub(super) const CUDARC: &str = "cudarc";

impl Workspace {
    /// True if a package reaches cudarc without the features that memcheck switches on. The build
    /// for the CPU then needs a CUDA toolkit, too.
    pub(crate) fn always_has_cuda(&self, packages: &[TestPackage]) -> bool {
        packages.iter().any(|package| self.cudarcs(package).next().is_some())
    }

    /// A warning for each copy of cudarc that memcheck does not see as candle's.
    pub(crate) fn warnings_of_cudarc(&self, packages: &[TestPackage]) -> Vec<String> {
        let mut warnings = Vec::new();
        for cudarc in packages.iter().flat_map(|package| self.cudarcs(package)) {
            let Some(warning) = self.warning(cudarc) else { continue };
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }

    fn cudarcs(&self, package: &TestPackage) -> impl Iterator<Item = &Package> {
        let reached = self.reachable(&package.package.id).into_iter();
        reached.filter(|package| package.name.as_str() == CUDARC)
    }

    fn warning(&self, cudarc: &Package) -> Option<String> {
        let nodes = &self.metadata.resolve.as_ref()?.nodes;
        let node = nodes.iter().find(|node| node.id == cudarc.id)?;
        let has = |feature: &str| node.features.iter().any(|known| **known == *feature);
        let is_linked = has("dynamic-linking") || has("static-linking");
        let is_loaded = has("dynamic-loading") || has("fallback-dynamic-loading") && !is_linked;
        let is_second = self.candles_cudarc().is_some_and(|of| !of.matches(&cudarc.version));
        let what = match (is_second, is_loaded) {
            // Candle adds the feature that links the libraries.
            (false, true) if has("dynamic-loading") => {
                "loads CUDA at run time, but candle links it, and cudarc builds with one of both only"
            }
            (true, true) => {
                "is another version than candle's and loads CUDA at run time, so its allocations \
                 are not counted, and the simulated device does not answer it"
            }
            (true, false) => {
                "is another version than candle's, so the simulated device can lack calls that it \
                 makes"
            }
            (false, _) => return None,
        };
        let users = nodes.iter().filter(|node| node.dependencies.contains(&cudarc.id));
        let users = users.filter_map(|node| {
            let user = self.metadata.packages.iter().find(|package| package.id == node.id)?;
            (user.name.as_str() != CANDLE).then(|| format!("`{}`", user.name))
        });
        let users = users.collect::<Vec<_>>().join(", ");
        Some(format!(
            "cudarc {} of {users} {what}: use `candle_core::cuda_backend::cudarc` instead",
            cudarc.version
        ))
    }

    /// The versions that candle accepts, whether its `cuda` is on or not.
    pub(super) fn candles_cudarc(&self) -> Option<&cargo_metadata::semver::VersionReq> {
        let candle = self.resolved(CANDLE)?;
        let dependency = candle.dependencies.iter().find(|it| it.name == CUDARC)?;
        Some(&dependency.req)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::invocation::values::CargoOptions;

    /// A package that depends on the runtime, candle, and one cudarc.
    fn workspace(cudarc: Option<(&str, &[&str])>) -> Workspace {
        let package = |name: &str, version: &str, dependencies: Value| {
            json!({
                "name": name, "version": version, "id": name, "source": null, "targets": [],
                "manifest_path": format!("/ws/{name}/Cargo.toml"), "dependencies": dependencies,
                "features": {},
            })
        };
        let dependency = |name: &str, req: &str| {
            json!({
                "name": name, "req": req, "kind": null, "optional": false, "features": [],
                "uses_default_features": true, "target": null, "rename": null, "source": null,
            })
        };
        let node = |id: &str, to: &[&str], features: &[&str]| {
            let deps = to.iter().map(|to| {
                json!({
                    "name": to, "pkg": to, "dep_kinds": [{ "kind": null, "target": null }],
                })
            });
            let deps: Vec<Value> = deps.collect();
            json!({ "id": id, "dependencies": to, "deps": deps, "features": features })
        };
        let mut packages = vec![
            package("app", "0.1.0", json!([dependency("memcheck-runtime", "*")])),
            package("memcheck-runtime", "0.1.0", json!([])),
            package("candle-core", "0.11.1", json!([dependency("cudarc", "^0.19.7")])),
        ];
        let mut of_app = vec!["memcheck-runtime", "candle-core"];
        let mut nodes = vec![node("memcheck-runtime", &[], &[]), node("candle-core", &[], &[])];
        if let Some((version, features)) = cudarc {
            packages.push(package("cudarc", version, json!([])));
            nodes.push(node("cudarc", &[], features));
            of_app.push("cudarc");
        }
        nodes.push(node("app", &of_app, &[]));
        let text = json!({
            "packages": packages, "workspace_members": ["app"],
            "workspace_default_members": ["app"], "workspace_root": "/ws",
            "resolve": { "nodes": nodes, "root": null }, "target_directory": "/ws/target",
            "version": 1,
        });
        Workspace::from(serde_json::from_value(text).unwrap(), &CargoOptions::default()).unwrap()
    }

    fn warnings(version: &str, features: &[&str]) -> String {
        let workspace = workspace(Some((version, features)));
        workspace.warnings_of_cudarc(&workspace.test_packages()).join("\n")
    }

    #[test]
    fn only_a_cudarc_that_is_always_on_needs_a_toolkit_on_the_cpu() {
        for (cudarc, expected) in [(None, false), (Some(("0.19.10", &["driver"][..])), true)] {
            let workspace = workspace(cudarc);
            assert_eq!(workspace.always_has_cuda(&workspace.test_packages()), expected);
        }
    }

    #[test]
    fn another_version_and_one_that_loads_cuda_are_named() {
        let fallback = "fallback-dynamic-loading";
        assert_eq!(warnings("0.19.10", &["driver", fallback]), "");
        assert_eq!(warnings("0.19.10", &["dynamic-linking", fallback]), "");
        let linked = warnings("0.17.8", &["dynamic-linking"]);
        assert!(linked.starts_with("cudarc 0.17.8 of `app` is another version"), "{linked}");
        assert!(!linked.contains("at run time"), "{linked}");
        let loaded = warnings("0.17.8", &[fallback]);
        assert!(loaded.contains("candle's and loads CUDA at run time"), "{loaded}");
        let conflict = warnings("0.19.10", &["dynamic-loading"]);
        assert!(conflict.contains("but candle links it"), "{conflict}");
    }
}
