//! Assigns scopes to modules. A span with an `index` is a layer, of nested ones only the outermost.
//! Spans next to layers in the same parent are modules too: embeddings, a last norm, the head.

use std::collections::BTreeSet;

/// The markers on a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScopeKind {
    /// No marker.
    #[default]
    Plain,
    /// The span has an index, so it is a layer.
    Indexed,
    /// Every device with layers has its own copy of the memory that is allocated in the span.
    Replicated,
}

/// One scope. Scopes are numbered from 1; 0 means no scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleScope {
    /// The number of the scope that it is nested in.
    pub parent: u32,
    /// Its own name, including its index: `model.layers.3`.
    pub name: String,
    /// Its marker.
    pub kind: ScopeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModulePart {
    Outside,
    Replicated,
    Module(usize),
}

#[derive(Debug)]
pub(super) struct ModuleParts {
    parts: Vec<ModulePart>,
    /// The names of the modules, each with true if it is a layer.
    pub(super) names: Vec<(String, bool)>,
}

impl ModuleParts {
    pub(super) fn owner(&self, scope: u32) -> ModulePart {
        let place = scope.checked_sub(1).map(|place| place as usize);
        place.and_then(|place| self.parts.get(place)).copied().unwrap_or(ModulePart::Outside)
    }

    /// Finds the modules among the scopes; `None` if no scope is a layer.
    pub(super) fn from_scopes(scopes: &[ModuleScope]) -> Option<Self> {
        let lineages: Vec<Vec<u32>> =
            (1..).zip(scopes).map(|(own, _)| lineage(scopes, own)).collect();
        let kind = |scope: &u32| scopes[*scope as usize - 1].kind;
        let layer =
            |around: &[u32]| around.iter().position(|scope| kind(scope) == ScopeKind::Indexed);
        // `parents` are directly around layers. `holders` are all spans around layers, no modules.
        let mut parents: BTreeSet<u32> = BTreeSet::new();
        let mut holders: BTreeSet<u32> = BTreeSet::new();
        for around in &lineages {
            if let Some(at) = layer(around) {
                parents.insert(at.checked_sub(1).map_or(0, |above| around[above]));
                holders.extend(&around[..at]);
            }
        }
        if parents.is_empty() {
            return None;
        }
        let mut names: Vec<(String, bool)> = Vec::new();
        let mut module = |scope: u32| {
            let ModuleScope { name, kind, .. } = &scopes[scope as usize - 1];
            let known = names.iter().position(|(known, _)| known == name);
            ModulePart::Module(known.unwrap_or_else(|| {
                names.push((name.clone(), *kind == ScopeKind::Indexed));
                names.len() - 1
            }))
        };
        let parts = lineages.iter().map(|around| {
            if around.iter().any(|scope| kind(scope) == ScopeKind::Replicated) {
                return ModulePart::Replicated;
            }
            if let Some(at) = layer(around) {
                return module(around[at]);
            }
            let is_sibling = |scope: &&u32| {
                parents.contains(&scopes[**scope as usize - 1].parent) && !holders.contains(*scope)
            };
            around.iter().rev().find(is_sibling).map_or(ModulePart::Outside, |scope| module(*scope))
        });
        let parts = parts.collect();
        Some(Self { parts, names })
    }
}

fn lineage(scopes: &[ModuleScope], own: u32) -> Vec<u32> {
    let mut around = Vec::new();
    let mut next = own;
    while next != 0 {
        around.push(next);
        next = scopes.get(next as usize - 1).map_or(0, |scope| scope.parent);
    }
    around.reverse();
    around
}
