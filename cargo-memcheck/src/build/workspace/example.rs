//! A workspace for tests, in the form of cargo's metadata.

use serde_json::{Value, json};

use super::Workspace;
use crate::invocation::values::CargoOptions;

/// A package of a dependency graph.
pub(super) struct Example {
    name: &'static str,
    version: &'static str,
    source: Option<&'static str>,
    dependencies: Vec<Value>,
    used: Vec<String>,
    features: Value,
    active: Vec<&'static str>,
}

pub(super) const REGISTRY: &str = "registry+https://host/index";

pub(super) fn package(name: &'static str) -> Example {
    Example {
        name,
        version: "0.1.0",
        source: None,
        dependencies: Vec::new(),
        used: Vec::new(),
        features: json!({}),
        active: Vec::new(),
    }
}

impl Example {
    pub(super) fn of(self, version: &'static str, source: &'static str) -> Self {
        Self { version, source: Some(source), ..self }
    }

    pub(super) fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    pub(super) fn features(self, features: Value) -> Self {
        Self { features, ..self }
    }

    pub(super) fn active(self, active: &[&'static str]) -> Self {
        Self { active: active.to_vec(), ..self }
    }

    pub(super) fn id(&self) -> String {
        let source = self.source.unwrap_or("path+file:///ws");
        format!("{source}#{}@{}", self.name, self.version)
    }

    /// A dependency that is used.
    pub(super) fn on(self, other: &Self) -> Self {
        self.on_as(other, None)
    }

    /// The same under another name.
    pub(super) fn on_as(self, other: &Self, rename: Option<&str>) -> Self {
        let requirement = format!("^{}", other.version);
        self.uses(other).declared(other.name, &requirement, json!({ "rename": rename }))
    }

    /// A dependency that cargo's graph has.
    pub(super) fn uses(mut self, other: &Self) -> Self {
        self.used.push(other.id());
        self
    }

    /// A dependency that is declared.
    pub(super) fn declared(mut self, name: &str, requirement: &str, more: Value) -> Self {
        let mut dependency = json!({
            "name": name, "req": requirement, "kind": null, "optional": false, "features": [],
            "uses_default_features": true, "target": null, "rename": null, "source": null,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            dependency[key] = value.clone();
        }
        self.dependencies.push(dependency);
        self
    }

    fn package(&self, root: &str) -> Value {
        let folder = match self.source {
            None => format!("{root}/{}", self.name),
            Some(_) => format!("/cargo/{}-{}", self.name, self.version),
        };
        json!({
            "name": self.name, "version": self.version, "id": self.id(), "source": self.source,
            "targets": [], "manifest_path": format!("{folder}/Cargo.toml"),
            "dependencies": self.dependencies, "features": self.features,
        })
    }

    fn node(&self) -> Value {
        let kinds = json!([{ "kind": null, "target": null }]);
        let deps = self.used.iter().map(|id| json!({ "name": "", "pkg": id, "dep_kinds": kinds }));
        json!({
            "id": self.id(), "dependencies": self.used, "deps": deps.collect::<Vec<_>>(),
            "features": self.active,
        })
    }
}

/// A workspace in `root` whose members are the packages without a source.
pub(super) fn workspace(root: &str, packages: &[&Example]) -> Workspace {
    let members = packages.iter().filter(|package| package.source.is_none());
    let members: Vec<String> = members.map(|package| package.id()).collect();
    let text = json!({
        "packages": packages.iter().map(|package| package.package(root)).collect::<Vec<_>>(),
        "workspace_members": members, "workspace_default_members": members,
        "resolve": {
            "nodes": packages.iter().map(|package| package.node()).collect::<Vec<_>>(),
            "root": null,
        },
        "workspace_root": root, "target_directory": format!("{root}/target"), "version": 1,
    });
    let metadata = serde_json::from_value(text).expect("cargo's metadata");
    Workspace::from(metadata, &CargoOptions::default()).expect("a workspace")
}
