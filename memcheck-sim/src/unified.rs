//! The data about a memory that host and device share: the heap of the process, which the program
//! that links the simulator reports, and the copies from the host. [`crate::machine`] uses them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

static HEAP: OnceLock<fn() -> u64> = OnceLock::new();

/// Sets the function that returns the live bytes of the heap of the process. Only the first call
/// has an effect. Without it the heap counts as empty.
///
/// The function must not call a CUDA function, because the simulated machine is locked.
pub fn count_heap(bytes: fn() -> u64) {
    let _ = HEAP.set(bytes);
}

/// Returns the live bytes of the heap of the process.
pub(crate) fn heap() -> u64 {
    HEAP.get().map_or(0, |bytes| bytes())
}

/// The copies from the host whose target is live, by the address of the target: source and length.
/// They are kept only if host and device share one memory.
#[derive(Debug, Default)]
pub(crate) struct Copies(BTreeMap<u64, (u64, u64)>);

impl Copies {
    pub(crate) fn add(&mut self, to: u64, from: u64, bytes: u64) {
        self.0.insert(to, (from, bytes));
    }

    /// Forgets the copies into `block`, because it is free or was overwritten.
    pub(crate) fn forget(&mut self, block: Range<u64>) {
        while let Some((&to, _)) = self.0.range(block.clone()).next() {
            self.0.remove(&to);
        }
    }

    /// Returns the bytes that were copied from `source`.
    pub(crate) fn from(&self, source: &Range<u64>) -> u64 {
        let overlap = |&(from, bytes): &(u64, u64)| {
            (from + bytes).min(source.end).saturating_sub(from.max(source.start))
        };
        self.0.values().map(overlap).sum()
    }
}
