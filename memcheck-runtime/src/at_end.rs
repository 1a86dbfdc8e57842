//! What is live at the end of the last iteration, block by block.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use memcheck_core::attribution::HeldBy;
use memcheck_core::space::Space;
use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::ledger;
use crate::probe::tensor;

/// The blocks that were live after the last iteration, and what the tensors of
/// that moment say of them. Empty in a run without attribution.
#[derive(Debug, Default)]
pub(crate) struct AtEnd {
    blocks: Vec<(u64, Block)>,
    held: HashMap<u64, HeldBy>,
}

/// What is known of the survivors of one context.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) shapes: BTreeSet<u16>,
    pub(crate) held: HeldBy,
}

impl AtEnd {
    /// Takes it now.
    pub(crate) fn take() -> Self {
        let mut blocks = Vec::new();
        ledger::each(|address, block| {
            if block.origin.context != 0 {
                blocks.push((address, block));
            }
        });
        Self { blocks, held: tensor::held() }
    }

    /// The survivors of `space` that were born in the measured iterations, by context. Of a
    /// context without any, those of the iterations behind them.
    pub(crate) fn of(&self, space: Space, measured: Range<u32>) -> FxHashMap<u32, Found> {
        let mut found = self.born_in(space, measured.clone());
        for (context, later) in self.born_in(space, measured.end..u32::MAX) {
            found.entry(context).or_insert(later);
        }
        found
    }

    fn born_in(&self, space: Space, births: Range<u32>) -> FxHashMap<u32, Found> {
        let mut found: FxHashMap<u32, Found> = FxHashMap::default();
        for (address, block) in &self.blocks {
            if block.space != space || !births.contains(&block.origin.birth) {
                continue;
            }
            let found = found.entry(block.origin.context).or_default();
            if block.origin.shape != 0 {
                found.shapes.insert(block.origin.shape);
            }
            let Some(by) = self.held.get(address) else { continue };
            let held = &mut found.held;
            held.whole += u64::from(by.whole > 0);
            held.views += u64::from(by.whole == 0 && by.views > 0);
            if by.whole == 0 {
                held.view_bytes = held.view_bytes.max(by.view_bytes);
            }
            held.graph += u64::from(by.graph > 0);
            held.variables += u64::from(by.variables > 0);
        }
        found
    }
}
