//! The part of cargo's metadata that a run of an archive needs. The rest is up to a hundred times as long.

use cargo_metadata::Metadata;
use memcheck_core::measurement::cargo_lock::CANDLE;

use crate::build::workspace::RUNTIME;

/// Bytes. Values of any form take up to thirty times as much memory.
const LIMIT: usize = 2 << 20;

/// The members, and the packages that tell the version of candle.
pub(super) fn prune(metadata: &Metadata) -> Metadata {
    let mut metadata = metadata.clone();
    let members = &metadata.workspace_members;
    metadata.packages.retain(|package| {
        members.contains(&package.id) || [RUNTIME, CANDLE].contains(&package.name.as_str())
    });
    let kept: Vec<_> = metadata.packages.iter().map(|package| package.id.clone()).collect();
    for package in &mut metadata.packages {
        package.dependencies.retain(|dependency| dependency.name == RUNTIME);
        package.targets.clear();
        package.features.clear();
        package.metadata = serde_json::Value::Null;
    }
    if let Some(resolve) = &mut metadata.resolve {
        resolve.nodes.retain(|node| kept.contains(&node.id));
        for node in &mut resolve.nodes {
            node.dependencies.retain(|id| kept.contains(id));
            node.deps.retain(|dependency| kept.contains(&dependency.pkg));
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
    serde_json::from_str(metadata).map_err(|error| format!("cargo's metadata: {error}"))
}
