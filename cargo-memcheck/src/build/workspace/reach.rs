//! The packages that cargo builds for one package, from the dependency graph of cargo's metadata.

use std::collections::{HashMap, HashSet};

use cargo_metadata::{DepKindInfo, Dependency, DependencyKind, Node, NodeDep, Package, PackageId};

use super::features::FeatureEntry;
use super::{RUNTIME, Workspace};

impl Workspace {
    /// With the package itself.
    pub(super) fn reachable(&self, root: &PackageId) -> Vec<&Package> {
        self.reachable_without(root, |_| false)
    }

    /// The packages that no member would build without memcheck-runtime.
    pub(crate) fn only_for_runtime(&self) -> Vec<&Package> {
        let is_runtime = |id: &PackageId| {
            let mut packages = self.metadata.packages.iter();
            packages.any(|package| package.id == *id && package.name == RUNTIME)
        };
        let members = &self.metadata.workspace_members;
        let of_all = |is_left_out: &dyn Fn(&PackageId) -> bool| -> HashSet<&PackageId> {
            let of = |root| self.reachable_without(root, is_left_out);
            members.iter().flat_map(of).map(|package| &package.id).collect()
        };
        let (all, others) = (of_all(&|_| false), of_all(&is_runtime));
        let is_only =
            |package: &&Package| all.contains(&package.id) && !others.contains(&package.id);
        self.metadata.packages.iter().filter(is_only).collect()
    }

    /// Without the packages of which `is_left_out` is true, and those that only they need.
    pub(super) fn reachable_without(
        &self,
        root: &PackageId,
        is_left_out: impl Fn(&PackageId) -> bool,
    ) -> Vec<&Package> {
        let packages: HashMap<&PackageId, &Package> =
            self.metadata.packages.iter().map(|package| (&package.id, package)).collect();
        let nodes = self.metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let nodes: HashMap<&PackageId, &Node> = nodes.map(|node| (&node.id, node)).collect();
        let mut seen: HashSet<&PackageId> = HashSet::from([root]);
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let Some(node) = nodes.get(id) else { continue };
            for dependency in &node.deps {
                let is_used = || {
                    let both = packages.get(id).zip(packages.get(&dependency.pkg));
                    both.is_none_or(|(from, to)| !is_named_weakly_only(from, node, to))
                };
                if is_built(dependency, id == root)
                    && is_used()
                    && !is_left_out(&dependency.pkg)
                    && seen.insert(&dependency.pkg)
                {
                    open.push(&dependency.pkg);
                }
            }
        }
        self.metadata.packages.iter().filter(|package| seen.contains(&package.id)).collect()
    }
}

/// Cargo does not build the tests of a dependency, so its dev-dependencies do not count.
fn is_built(dependency: &NodeDep, is_of_root: bool) -> bool {
    dependency.dep_kinds.iter().any(|how| {
        let is_test_only = !is_of_root && how.kind == DependencyKind::Development;
        !is_test_only && !is_for_no_target(how)
    })
}

/// memcheck-runtime has such dependencies, for the lock file of its user.
fn is_for_no_target(how: &DepKindInfo) -> bool {
    how.target.as_ref().is_some_and(|target| target.to_string() == "cfg(any())")
}

/// True for an optional dependency that only entries such as `candle-ug?/cuda` name among the
/// features that are on. A build leaves it out, but cargo's metadata and lock files have it
/// (rust-lang/cargo#10801).
fn is_named_weakly_only(from: &Package, node: &Node, to: &Package) -> bool {
    let declared: Vec<&Dependency> =
        from.dependencies.iter().filter(|dependency| dependency.name == *to.name).collect();
    let entries = || {
        let on = node.features.iter().filter_map(|feature| from.features.get(feature.as_str()));
        on.flatten().map(|entry| FeatureEntry::parse(entry))
    };
    let is_about = |dependency: &Dependency, named: &str| {
        *dependency.rename.as_ref().unwrap_or(&dependency.name) == *named
    };
    let is_weak_only = |dependency: &&Dependency| {
        let (mut weak, mut strong) = (false, false);
        for entry in entries() {
            match entry {
                FeatureEntry::OfDependency { name, is_weak, .. } if is_about(dependency, name) => {
                    weak |= is_weak;
                    strong |= !is_weak;
                }
                FeatureEntry::Optional(name) if is_about(dependency, name) => strong = true,
                _ => {}
            }
        }
        dependency.optional && weak && !strong
    };
    !declared.is_empty() && declared.iter().all(is_weak_only)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::example::{REGISTRY, package, workspace};

    /// The packages that are built for a package with candle, of which these features are on.
    /// Cargo's metadata have candle-ug in all cases.
    fn reached(active: &[&'static str]) -> Vec<String> {
        let ug = package("candle-ug").of("0.11.0", REGISTRY);
        let optional = json!({ "optional": true, "rename": "ug" });
        let candle = package("candle-core").of("0.11.0", REGISTRY);
        let candle = candle.uses(&ug).declared("candle-ug", "^0.11", optional);
        let candle = candle.active(active).features(json!({
            "cuda": ["ug?/cuda"], "ug": ["dep:ug"], "jit": ["ug/default"],
        }));
        let app = package("app").on(&candle);
        let workspace = workspace("/ws", &[&app, &candle, &ug]);
        let root = &workspace.members()[0].id;
        workspace.reachable(root).iter().map(|package| package.name.to_string()).collect()
    }

    #[test]
    fn a_dependency_that_only_weak_entries_name_is_not_built() {
        assert_eq!(reached(&["cuda"]), ["app", "candle-core"]);
        for named in ["ug", "jit"] {
            let all = ["app", "candle-core", "candle-ug"];
            assert_eq!(reached(&["cuda", named]), all, "{named}");
            assert_eq!(reached(&[named]), all, "{named}");
        }
        // A flag such as `--features candle-core/ug` switches it on without a feature.
        assert_eq!(reached(&[]), ["app", "candle-core", "candle-ug"]);
    }

    #[test]
    fn what_only_a_left_out_package_needs_is_left_out_too() {
        let ug = package("candle-ug").of("0.11.0", REGISTRY);
        let candle = package("candle-core").of("0.11.0", REGISTRY).on(&ug);
        let app = package("app").on(&candle);
        let workspace = workspace("/ws", &[&app, &candle, &ug]);
        let root = &workspace.members()[0].id;
        let left_out = |id: &super::PackageId| id.repr.contains("candle-core");
        assert_eq!(workspace.reachable(root).len(), 3);
        let rest = workspace.reachable_without(root, left_out);
        assert_eq!(rest.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["app"]);
    }
}
