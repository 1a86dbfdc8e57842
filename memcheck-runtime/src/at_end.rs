//! The blocks that are live at the end of the last iteration.

use std::collections::BTreeSet;
use std::ops::Range;

use memcheck_core::measurement::attribution::HeldBy;
use memcheck_core::space::Space;
use rustc_hash::FxHashMap;

use crate::block::{Block, Origin};
use crate::ledger;
use crate::probe::tensor;

/// The blocks that were live after the last iteration, grouped by space, context and iteration of
/// birth, with the tensors that held them at that moment. Empty in a run without attribution.
#[derive(Debug, Default)]
pub(crate) struct LiveAtEnd {
    groups: FxHashMap<(Space, u32, u32), SurvivorTensors>,
}

/// Shapes and holders of the survivors of one context.
#[derive(Debug, Default, Clone)]
pub(crate) struct SurvivorTensors {
    pub(crate) shapes: BTreeSet<u16>,
    pub(crate) held: HeldBy,
}

impl LiveAtEnd {
    /// Reads the ledger and the live tensors now.
    pub(crate) fn capture() -> Self {
        let held = tensor::holders();
        let mut groups: FxHashMap<(Space, u32, u32), SurvivorTensors> = FxHashMap::default();
        ledger::each(|address, Block { space, origin, .. }| {
            let Origin { birth, context, shape } = origin;
            if context != 0 {
                let group = groups.entry((space, context, birth)).or_default();
                group.add(shape, held.get(&address));
            }
        });
        Self { groups }
    }

    /// The survivors of `space` that were born in the measured iterations, by context. A context
    /// that has no such survivors gets those of the iterations after the measured ones.
    pub(crate) fn survivors_of(
        &self,
        space: Space,
        measured: Range<u32>,
    ) -> FxHashMap<u32, SurvivorTensors> {
        let mut found = self.born_in(space, measured.clone());
        for (context, later) in self.born_in(space, measured.end..u32::MAX) {
            found.entry(context).or_insert(later);
        }
        found
    }

    fn born_in(&self, space: Space, births: Range<u32>) -> FxHashMap<u32, SurvivorTensors> {
        let mut by_context: FxHashMap<u32, SurvivorTensors> = FxHashMap::default();
        for ((of_space, context, birth), found) in &self.groups {
            if *of_space == space && births.contains(birth) {
                by_context.entry(*context).or_default().merge(found);
            }
        }
        by_context
    }
}

impl SurvivorTensors {
    /// Adds a block of this shape (0 if it has none) that tensors hold as `by` describes.
    fn add(&mut self, shape: u16, by: Option<&HeldBy>) {
        if shape != 0 {
            self.shapes.insert(shape);
        }
        if let Some(by) = by {
            let held = &mut self.held;
            held.whole += u64::from(by.whole > 0);
            held.views += u64::from(by.whole == 0 && by.views > 0);
            if by.whole == 0 {
                held.view_bytes = held.view_bytes.max(by.view_bytes);
            }
            held.graph += u64::from(by.graph > 0);
            held.variables += u64::from(by.variables > 0);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.shapes.extend(&other.shapes);
        let (held, by) = (&mut self.held, other.held);
        held.whole += by.whole;
        held.views += by.views;
        held.view_bytes = held.view_bytes.max(by.view_bytes);
        held.graph += by.graph;
        held.variables += by.variables;
    }
}
