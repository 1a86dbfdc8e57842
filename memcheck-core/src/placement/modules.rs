//! Which module a scope belongs to.
//!
//! A span with an `index` is a layer, the outermost of those around. The spans
//! beside layers, inside the same span as they, are modules of their own: the
//! embeddings, a last norm, the head. What is in none of them is outside.

use std::collections::BTreeSet;

/// What a span says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScopeKind {
    /// Nothing.
    #[default]
    Plain,
    /// It has an index: a layer.
    Indexed,
    /// What is made in it, every device with layers has.
    Replicated,
}

/// One scope. Scopes have numbers, from 1; 0 is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The scope that it is in.
    pub parent: u32,
    /// Its own name, with its index where it has one: `model.layers.3`.
    pub name: String,
    /// What it says of itself.
    pub kind: ScopeKind,
}

/// What bytes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// No module.
    Outside,
    /// Every device with layers.
    Replicated,
    /// The module of this number.
    Module(usize),
}

/// Scopes by number, and the modules that they belong to.
#[derive(Debug)]
pub(super) struct Parts {
    parts: Vec<Part>,
    /// The names of the modules, and whether they are layers.
    pub(super) names: Vec<(String, bool)>,
}

impl Parts {
    /// What the scope with this number belongs to.
    pub(super) fn of(&self, scope: u32) -> Part {
        let place = scope.checked_sub(1).map(|place| place as usize);
        place.and_then(|place| self.parts.get(place)).copied().unwrap_or(Part::Outside)
    }

    /// Tells the modules from the scopes; `None` where no scope is a layer.
    pub(super) fn read(scopes: &[Scope]) -> Option<Self> {
        let around: Vec<Vec<u32>> =
            (1..).zip(scopes).map(|(own, _)| lineage(scopes, own)).collect();
        let kind = |scope: &u32| scopes[*scope as usize - 1].kind;
        let layer =
            |around: &[u32]| around.iter().position(|scope| kind(scope) == ScopeKind::Indexed);
        // Spans in which layers are, and which are no modules themselves.
        let mut parents: BTreeSet<u32> = BTreeSet::new();
        let mut holders: BTreeSet<u32> = BTreeSet::new();
        for around in &around {
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
            let Scope { name, kind, .. } = &scopes[scope as usize - 1];
            let known = names.iter().position(|(known, _)| known == name);
            Part::Module(known.unwrap_or_else(|| {
                names.push((name.clone(), *kind == ScopeKind::Indexed));
                names.len() - 1
            }))
        };
        let parts = around.iter().map(|around| {
            if around.iter().any(|scope| kind(scope) == ScopeKind::Replicated) {
                return Part::Replicated;
            }
            if let Some(at) = layer(around) {
                return module(around[at]);
            }
            let beside = |scope: &&u32| {
                parents.contains(&scopes[**scope as usize - 1].parent) && !holders.contains(*scope)
            };
            around.iter().rev().find(beside).map_or(Part::Outside, |scope| module(*scope))
        });
        let parts = parts.collect();
        Some(Self { parts, names })
    }
}

/// A scope and those that it is in, the outermost first.
fn lineage(scopes: &[Scope], own: u32) -> Vec<u32> {
    let mut around = Vec::new();
    let mut next = own;
    while next != 0 {
        around.push(next);
        next = scopes.get(next as usize - 1).map_or(0, |scope| scope.parent);
    }
    around.reverse();
    around
}
