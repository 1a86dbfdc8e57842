//! The blocks that are live at the end of the last iteration.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use memcheck_core::measurement::attribution::HeldBy;
use memcheck_core::space::Space;
use memcheck_ledger as ledger;
use memcheck_ledger::block::{Block, Origin};
use rustc_hash::FxHashMap;

use crate::probe::tensor;

/// The blocks of iterations that were live after the last one, grouped by space, context and age,
/// with the tensors that held them at that moment. Empty in a run without attribution.
#[derive(Debug, Default)]
pub(crate) struct LiveAtEnd {
    groups: FxHashMap<(Space, u32, Age), SurvivorTensors>,
}

/// The iterations in which a block was born.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Age {
    Measured,
    /// After the measured iterations.
    Later,
}

/// Shapes and holders of the survivors of one context.
#[derive(Debug, Default, Clone)]
pub(crate) struct SurvivorTensors {
    pub(crate) shapes: BTreeSet<u16>,
    held: HeldBy,
    /// The numbers of the devices that iterations opened and whose tensors hold blocks.
    new_devices: BTreeSet<u16>,
}

impl LiveAtEnd {
    /// Reads the ledger and the live tensors now. `measured` are the births in measured iterations.
    pub(crate) fn capture(measured: &Range<u32>) -> Self {
        let (held, devices) = (tensor::holders(), tensor::new_devices(measured.start));
        let mut unfreed = HashSet::new();
        ledger::each_unfreed(|address, _| {
            unfreed.insert(address);
        });
        let mut groups: FxHashMap<(Space, u32, Age), SurvivorTensors> = FxHashMap::default();
        ledger::each(|address, Block { size, space, origin }| {
            let Origin { birth, context, shape } = origin;
            if context != 0 && birth >= measured.start {
                let age = if birth < measured.end { Age::Measured } else { Age::Later };
                let group = groups.entry((space, context, age)).or_default();
                group.add(shape, held.get(&address));
                group.new_devices.extend(devices.get(&address));
                if unfreed.contains(&address) {
                    group.held.unfreed += size;
                }
            }
        });
        Self { groups }
    }

    /// The survivors of `space` that were born in the measured iterations, by context. A context
    /// that has no such survivors gets those of the iterations after the measured ones.
    pub(crate) fn survivors_of(&self, space: Space) -> FxHashMap<u32, SurvivorTensors> {
        let mut found = self.born_in(space, Age::Measured);
        for (context, later) in self.born_in(space, Age::Later) {
            found.entry(context).or_insert(later);
        }
        found
    }

    fn born_in(&self, space: Space, age: Age) -> FxHashMap<u32, SurvivorTensors> {
        let of_age = self.groups.iter().filter(|((of, _, born), _)| (*of, *born) == (space, age));
        of_age.map(|(&(_, context, _), found)| (context, found.clone())).collect()
    }
}

impl SurvivorTensors {
    pub(crate) fn held(&self) -> HeldBy {
        HeldBy { new_devices: self.new_devices.len() as u64, ..self.held }
    }

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
}
