//! The part of cargo's metadata that a run of an archive needs. The rest is up to a hundred times
//! as long.

use std::collections::HashSet;

use cargo_metadata::{Metadata, Node, Package, PackageId};
use memcheck_core::measurement::cargo_lock::CANDLE;

use crate::build::workspace::RUNTIME;

/// Bytes. Values of any form take up to thirty times as much memory.
const LIMIT: usize = 2 << 20;
/// A package is looked up among all packages.
const PACKAGES: usize = 5000;
/// The runtime and candle, in several versions.
const DEPENDENCIES: usize = 16;

/// The members, and the packages that tell the version of candle.
pub(super) fn prune(metadata: &Metadata) -> Metadata {
    let mut metadata = metadata.clone();
    let members = &metadata.workspace_members;
    metadata.packages.retain(|package| {
        members.contains(&package.id) || [RUNTIME, CANDLE].contains(&package.name.as_str())
    });
    let named = |package: &&Package| [RUNTIME, CANDLE].contains(&package.name.as_str());
    let of_candle: HashSet<PackageId> =
        metadata.packages.iter().filter(named).map(|package| package.id.clone()).collect();
    let kept: HashSet<PackageId> =
        metadata.packages.iter().map(|package| package.id.clone()).collect();
    for package in &mut metadata.packages {
        package.dependencies.retain(|dependency| dependency.name == RUNTIME);
        package.targets.clear();
        package.features.clear();
        package.metadata = serde_json::Value::Null;
    }
    if let Some(resolve) = &mut metadata.resolve {
        resolve.nodes.retain(|node| kept.contains(&node.id));
        for node in &mut resolve.nodes {
            node.dependencies.retain(|id| of_candle.contains(id));
            // `dependencies` has the same packages.
            node.deps.clear();
            node.features.clear();
        }
    }
    metadata.workspace_metadata = serde_json::Value::Null;
    metadata
}

pub(super) fn parse(metadata: &str) -> Result<Metadata, String> {
    if metadata.len() > LIMIT {
        return Err(format!("cargo's metadata has {} bytes", metadata.len()));
    }
    let metadata: Metadata = serde_json::from_slice(metadata.as_bytes())
        .map_err(|error| format!("cargo's metadata: {error}"))?;
    let (packages, members) = (metadata.packages.len(), metadata.workspace_members.len());
    let nodes = metadata.resolve.as_ref().map_or(&[][..], |resolve| &resolve.nodes);
    let is_large = |node: &Node| !node.deps.is_empty() || node.dependencies.len() > DEPENDENCIES;
    if packages.max(members).max(nodes.len()) > PACKAGES || nodes.iter().any(is_large) {
        return Err("cargo's metadata has more packages than an archive needs".to_owned());
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::build::workspace::Workspace;

    #[test]
    fn the_pruned_metadata_of_a_workspace_still_has_its_version_of_candle() {
        let output = std::process::Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1"])
            .output()
            .unwrap();
        let whole = String::from_utf8(output.stdout).unwrap();
        let metadata: Metadata = serde_json::from_str(&whole).unwrap();
        let pruned = serde_json::to_string(&prune(&metadata)).unwrap();
        assert!(pruned.len() < whole.len() / 10, "{} of {}", pruned.len(), whole.len());
        let of = |metadata: Metadata| {
            let packages = Workspace::of(metadata, PathBuf::new()).test_packages();
            packages.iter().map(|p| (p.name().to_owned(), p.candle.clone())).collect::<Vec<_>>()
        };
        let packages = of(parse(&pruned).unwrap());
        assert_eq!(packages, of(metadata));
        assert!(packages.iter().any(|(_, candle)| candle.is_some()), "{packages:?}");
    }
}
