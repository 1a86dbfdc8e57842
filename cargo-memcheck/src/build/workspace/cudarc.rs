//! cudarc in the dependency graph: whether candle's `cuda` is always on, and other copies of cudarc
//! than candle's, whose calls memcheck counts in part or not at all.

use std::collections::BTreeSet;

use cargo_metadata::Package;
use cargo_metadata::semver::{Op, Version, VersionReq};
use memcheck_core::measurement::cargo_lock::CANDLE;

use super::{TestPackage, Workspace};

pub(super) const CUDARC: &str = "cudarc";

/// The version of CUDA that the simulated toolkit reports, in cudarc's format.
const CUDA_VERSION: u32 = 13_000;

/// The first versions of cudarc that accept this version of CUDA and no later one. The build script
/// panics above it.
static ACCEPTED: [(Version, u32); 5] = [
    (Version::new(0, 16, 3), 12_090),
    (Version::new(0, 13, 5), 12_080),
    (Version::new(0, 12, 1), 12_060),
    (Version::new(0, 11, 3), 12_050),
    (Version::new(0, 11, 0), 12_030),
];
/// The first version that accepts [`CUDA_VERSION`].
const FIRST: Version = Version::new(0, 17, 1);

/// The first version that calls functions that the linker has resolved. Older ones load the
/// libraries at run time, whatever their features are.
const FIRST_LINKED: Version = Version::new(0, 17, 0);

impl Workspace {
    /// True if a package reaches cudarc without the features that memcheck switches on. The build
    /// for the CPU then needs a CUDA toolkit, too.
    pub(crate) fn always_has_cuda(&self, packages: &[TestPackage]) -> bool {
        packages.iter().any(|package| self.cudarcs(package).next().is_some())
    }

    /// The greatest version of CUDA that every cudarc in the graph accepts.
    pub(crate) fn cuda_version(&self) -> u32 {
        let all: Vec<&Package> = self.metadata.packages.iter().collect();
        versions(&all).iter().map(accepted).min().unwrap_or(CUDA_VERSION)
    }

    /// A warning for each version of cudarc whose calls are not counted on a real GPU, because it
    /// loads the libraries. It is for packages whose runtime is built without candle: the cudarc of
    /// a candle that the runtime names is linked.
    pub(crate) fn warnings_of_loaded_cudarc(&self, packages: &[TestPackage]) -> Vec<String> {
        let packages = packages.iter().filter(|package| package.candle.is_none());
        let loaded: BTreeSet<Version> = packages
            .flat_map(|package| {
                let reached = self.reachable(&package.package.id);
                let is_loaded = |version: &Version| {
                    let resolved = reached
                        .iter()
                        .find(|it| it.name.as_str() == CUDARC && it.version == *version);
                    *version < FIRST_LINKED
                        || resolved.is_some_and(|it| self.is_linked(it) == Some(false))
                };
                versions(&reached).into_iter().filter(is_loaded).collect::<Vec<_>>()
            })
            .collect();
        let warning = |version: &Version| {
            let linked =
                if *version < FIRST_LINKED { "" } else { "use its feature `dynamic-linking`, or " };
            format!(
                "cudarc {version} loads CUDA at run time, so that its calls are not counted on a real \
                 GPU: {linked}use `--device sim`, which answers and counts them"
            )
        };
        loaded.iter().map(warning).collect()
    }

    fn is_linked(&self, cudarc: &Package) -> Option<bool> {
        let nodes = &self.metadata.resolve.as_ref()?.nodes;
        let node = nodes.iter().find(|node| node.id == cudarc.id)?;
        let has = |feature: &str| node.features.iter().any(|known| **known == *feature);
        Some(has("dynamic-linking") || has("static-linking"))
    }

    /// A warning for each copy of cudarc that memcheck does not see as candle's.
    pub(crate) fn warnings_of_cudarc(&self, packages: &[TestPackage]) -> Vec<String> {
        let mut warnings = Vec::new();
        let packages = packages.iter().filter(|package| package.candle.is_some());
        for package in packages {
            let reached = self.reachable(&package.package.id);
            for cudarc in reached.iter().filter(|it| it.name.as_str() == CUDARC) {
                let Some(warning) = self.warning(cudarc, &reached) else { continue };
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }

    fn cudarcs(&self, package: &TestPackage) -> impl Iterator<Item = &Package> {
        let reached = self.reachable(&package.package.id).into_iter();
        reached.filter(|package| package.name.as_str() == CUDARC)
    }

    /// `reached` are the packages among which its users are.
    fn warning(&self, cudarc: &Package, reached: &[&Package]) -> Option<String> {
        let nodes = &self.metadata.resolve.as_ref()?.nodes;
        let node = nodes.iter().find(|node| node.id == cudarc.id)?;
        let has = |feature: &str| node.features.iter().any(|known| **known == *feature);
        let is_linked = has("dynamic-linking") || has("static-linking");
        // The fallback applies only if no other feature has chosen.
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
            let user = reached.iter().find(|package| package.id == node.id)?;
            // Candle itself needs no change.
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

/// The versions of cudarc among `packages`. If candle needs a feature to depend on it, this is the
/// oldest one that candle accepts.
fn versions(packages: &[&Package]) -> Vec<Version> {
    let named =
        |name: &'static str| packages.iter().filter(move |package| package.name.as_str() == name);
    let resolved: Vec<Version> = named(CUDARC).map(|cudarc| cudarc.version.clone()).collect();
    let required = named(CANDLE).flat_map(|candle| &candle.dependencies);
    let missing = required.filter(|dependency| {
        dependency.name == CUDARC && !resolved.iter().any(|version| dependency.req.matches(version))
    });
    let missing: Vec<Version> = missing.filter_map(|it| oldest(&it.req)).collect();
    [resolved, missing].concat()
}

fn accepted(version: &Version) -> u32 {
    if *version >= FIRST {
        return CUDA_VERSION;
    }
    let known = ACCEPTED.iter().find(|(first, _)| version >= first);
    known.map_or(ACCEPTED[ACCEPTED.len() - 1].1, |(_, cuda)| *cuda)
}

/// The oldest version that a requirement such as `^0.13.5` accepts.
fn oldest(requirement: &VersionReq) -> Option<Version> {
    let first = requirement.comparators.first()?;
    let has_least = matches!(first.op, Op::Caret | Op::Tilde | Op::Exact | Op::GreaterEq);
    has_least.then(|| Version::new(first.major, first.minor.unwrap_or(0), first.patch.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::example::{self, REGISTRY, package};
    use super::*;
    use crate::invocation::values::CargoOptions;

    /// A package that depends on the runtime, candle, and one cudarc.
    fn workspace(cudarc: Option<(&str, &[&str])>) -> Workspace {
        workspace_of(("0.11.1", "^0.19.7"), true, cudarc)
    }

    /// The same with this version of candle, which requires this cudarc. The runtime depends on
    /// candle if it `names_candle`.
    fn workspace_of(
        (candle, required): (&str, &str),
        names_candle: bool,
        cudarc: Option<(&str, &[&str])>,
    ) -> Workspace {
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
            package("candle-core", candle, json!([dependency("cudarc", required)])),
        ];
        let mut of_app = vec!["memcheck-runtime", "candle-core"];
        let of_runtime: &[&str] = if names_candle { &["candle-core"] } else { &[] };
        let mut nodes =
            vec![node("memcheck-runtime", of_runtime, &[]), node("candle-core", &[], &[])];
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
    fn the_toolkit_reports_a_version_that_cudarc_accepts() {
        let version = |candle, cudarc: Option<&str>| {
            workspace_of(candle, false, cudarc.map(|version| (version, &[][..]))).cuda_version()
        };
        assert_eq!(version(("0.11.1", "^0.19.7"), None), 13_000);
        assert_eq!(version(("0.9.2", "^0.19.0"), Some("0.19.3")), 13_000);
        assert_eq!(version(("0.9.1", "^0.16.1"), Some("0.16.6")), 12_090);
        assert_eq!(version(("0.9.1", "^0.16.1"), None), 12_080);
        assert_eq!(version(("0.8.4", "^0.13.5"), Some("0.13.9")), 12_080);
        assert_eq!(version(("0.8.4", "^0.13.5"), Some("0.19.10")), 12_080, "candle's is missing");
        assert_eq!(version(("0.11.1", "^0.19.7"), Some("0.12.1")), 12_060);
        assert_eq!(version(("0.11.1", "^0.19.7"), Some("0.9.15")), 12_030);
    }

    #[test]
    fn a_cudarc_that_loads_cuda_is_named_before_a_run_on_a_real_gpu() {
        let warnings = |names_candle: bool, version: &str, feature: &str| {
            let of = ("0.8.4", if version == "0.13.9" { "^0.13.5" } else { "^0.19.0" });
            let workspace = workspace_of(of, names_candle, Some((version, &[feature])));
            workspace.warnings_of_loaded_cudarc(&workspace.test_packages()).join("\n")
        };
        let always = warnings(false, "0.13.9", "dynamic-linking");
        assert!(always.starts_with("cudarc 0.13.9 loads CUDA at run time"), "{always}");
        assert!(!always.contains("`dynamic-linking`"), "{always}");
        let by_feature = warnings(false, "0.19.10", "dynamic-loading");
        assert!(by_feature.contains("use its feature `dynamic-linking`"), "{by_feature}");
        assert_eq!(warnings(false, "0.19.10", "dynamic-linking"), "");
        assert_eq!(warnings(true, "0.19.10", "dynamic-loading"), "", "candle links its own");
        let workspace = workspace_of(("0.8.4", "^0.13.5"), false, None);
        let of_candle = workspace.warnings_of_loaded_cudarc(&workspace.test_packages());
        assert!(of_candle[0].starts_with("cudarc 0.13.5 loads"), "candle's, without its feature");
    }

    /// candle 0.9.2 to 0.11.0 have `cuda = ["candle-ug?/cuda", …]`, so that cargo's metadata have
    /// the cudarc of `ug-cuda` in each graph with candle's CUDA.
    #[test]
    fn a_cudarc_that_no_feature_switches_on_is_not_named() {
        let warnings = |active: &[&'static str]| {
            let own = package("cudarc").of("0.19.10", REGISTRY).active(&["dynamic-linking"]);
            let older = package("cudarc").of("0.17.8", REGISTRY).active(&["dynamic-linking"]);
            let ug_cuda = package("ug-cuda").of("0.5.0", REGISTRY).on(&older);
            let ug = package("candle-ug").of("0.11.0", REGISTRY).on(&ug_cuda);
            let candle = package("candle-core").of("0.11.0", REGISTRY).on(&own).uses(&ug);
            let candle = candle.declared("candle-ug", "^0.11", json!({ "optional": true }));
            let candle = candle.active(active).features(json!({
                "cuda": ["candle-ug?/cuda"], "ug": ["dep:candle-ug"],
            }));
            let runtime = package("memcheck-runtime").of("0.1.0", REGISTRY).on(&candle);
            let app = package("app").on(&candle).on(&runtime);
            let all = [&app, &own, &older, &ug_cuda, &ug, &candle, &runtime];
            let workspace = example::workspace("/ws", &all);
            workspace.warnings_of_cudarc(&workspace.test_packages()).join("\n")
        };
        assert_eq!(warnings(&["cuda"]), "");
        let linked = warnings(&["cuda", "ug"]);
        assert!(linked.starts_with("cudarc 0.17.8 of `ug-cuda` is another version"), "{linked}");
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
