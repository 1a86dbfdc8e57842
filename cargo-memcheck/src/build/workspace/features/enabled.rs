//! Lists the features and optional dependencies that a feature of a package switches on, also those
//! of its dependencies, as far as cargo's metadata describe them.

use std::collections::{BTreeSet, HashMap, HashSet};

use cargo_metadata::semver::VersionReq;
use cargo_metadata::{Dependency, Metadata, Node, Package, PackageId};
use memcheck_core::measurement::cargo_lock::RUNTIME;

use super::FeatureEntry;

/// The packages of a dependency graph, by id.
pub(super) struct Graph<'a> {
    packages: HashMap<&'a PackageId, &'a Package>,
    nodes: HashMap<&'a PackageId, &'a Node>,
}

/// Everything that a feature switches on.
#[derive(Debug, Default)]
pub(super) struct Enabled<'a> {
    /// By the name of the package.
    pub(super) features: BTreeSet<(&'a str, String)>,
    /// The features of the package itself.
    pub(super) own: BTreeSet<String>,
    /// The optional dependencies that it adds to the graph, by the name of the package.
    pub(super) added: BTreeSet<&'a str>,
    /// Dependencies whose features are not known, because they are not in the graph.
    pub(super) unknown: BTreeSet<&'a str>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(metadata: &'a Metadata) -> Self {
        let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        Self {
            packages: metadata.packages.iter().map(|package| (&package.id, package)).collect(),
            nodes: nodes.map(|node| (&node.id, node)).collect(),
        }
    }

    pub(super) fn package(&self, id: &PackageId) -> Option<&'a Package> {
        self.packages.get(id).copied()
    }

    /// True if `other` is a dependency that is used.
    pub(super) fn uses(&self, package: &Package, other: &Package) -> bool {
        self.nodes.get(&package.id).is_some_and(|node| node.dependencies.contains(&other.id))
    }

    /// True if the feature is on without further flags.
    pub(super) fn is_on(&self, package: &Package, feature: &str) -> bool {
        let node = self.nodes.get(&package.id);
        node.is_some_and(|node| node.features.iter().any(|known| **known == *feature))
    }

    pub(super) fn enabled_by(&self, package: &'a Package, feature: &str) -> Enabled<'a> {
        let mut enabled = Enabled::default();
        let mut seen: HashSet<(&PackageId, String)> = HashSet::new();
        let mut open = vec![(package, feature.to_owned())];
        while let Some((of, feature)) = open.pop() {
            if !seen.insert((&of.id, feature.clone())) {
                continue;
            }
            for entry in of.features.get(&feature).into_iter().flatten() {
                match FeatureEntry::parse(entry) {
                    FeatureEntry::Own(name) => open.push((of, name.to_owned())),
                    FeatureEntry::Optional(name) => {
                        self.add(of, name, &mut enabled, &mut open);
                    }
                    FeatureEntry::OfDependency { name, feature, is_weak } => {
                        if !is_weak {
                            self.add(of, name, &mut enabled, &mut open);
                        }
                        for dependency in named(of, name) {
                            match self.chosen(of, dependency) {
                                Some(chosen) => open.push((chosen, feature.to_owned())),
                                None => unknown(dependency, feature, &mut enabled),
                            }
                        }
                    }
                }
            }
            if of.id == package.id {
                enabled.own.insert(feature.clone());
            }
            enabled.features.insert((of.name.as_str(), feature));
        }
        enabled
    }

    /// Adds an optional dependency with the features that its declaration names.
    fn add(
        &self,
        of: &'a Package,
        name: &str,
        enabled: &mut Enabled<'a>,
        open: &mut Vec<(&'a Package, String)>,
    ) {
        for dependency in named(of, name).filter(|dependency| dependency.optional) {
            let chosen = self.chosen(of, dependency);
            let is_there = chosen.is_some_and(|chosen| self.uses(of, chosen));
            if !is_there {
                enabled.added.insert(&dependency.name);
            }
            let default = dependency.uses_default_features.then(|| "default".to_owned());
            for feature in dependency.features.iter().cloned().chain(default) {
                match chosen {
                    Some(chosen) => open.push((chosen, feature)),
                    None => unknown(dependency, &feature, enabled),
                }
            }
        }
    }

    /// The package of a dependency, which an optional one that is off shares with another package
    /// of the graph, if with any.
    fn chosen(&self, of: &Package, dependency: &Dependency) -> Option<&'a Package> {
        let fits = |package: &&&'a Package| {
            let is_path = dependency
                .path
                .as_ref()
                .is_none_or(|path| package.manifest_path.parent() == Some(path));
            // A requirement of any version does not match those before a release.
            let fits =
                dependency.req == VersionReq::STAR || dependency.req.matches(&package.version);
            package.name.as_str() == dependency.name && fits && is_path
        };
        let node = self.nodes.get(&of.id);
        let used = node.into_iter().flat_map(|node| &node.dependencies);
        let used = used.filter_map(|id| self.packages.get(id)).find(fits);
        used.or_else(|| self.packages.values().find(fits)).copied()
    }
}

/// The declarations of a dependency by the name that the package gives it. The runtime is left out:
/// its features are memcheck's switches, and not those of the program.
fn named<'a>(of: &'a Package, name: &str) -> impl Iterator<Item = &'a Dependency> {
    let has_name = move |dependency: &&Dependency| {
        *dependency.rename.as_ref().unwrap_or(&dependency.name) == *name
    };
    let declared = of.dependencies.iter().filter(|dependency| dependency.name != RUNTIME);
    declared.filter(has_name).collect::<Vec<_>>().into_iter()
}

fn unknown<'a>(dependency: &'a Dependency, feature: &str, enabled: &mut Enabled<'a>) {
    enabled.unknown.insert(&dependency.name);
    enabled.features.insert((&dependency.name, feature.to_owned()));
}
