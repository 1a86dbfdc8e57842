//! Where the layers of a model go that no one device holds: from what each of
//! them was measured to hold, to a map of devices.
//!
//! ```text
//! scopes ──► modules   which span is a layer, which a part beside the layers
//! steps  ──► measure   the peak of every run of neighbouring modules, exactly
//! peaks  ──► plan      which of them goes to which device: the smallest maximum
//!                      ──► map (JSON, as Hugging Face's accelerate writes it)
//! ```
//!
//! Peaks of single modules do not add up: one layer is at its peak while the
//! others wait. So what is measured is the peak of every run of neighbouring
//! modules, as if a device held these and nothing else: what it asks of a device
//! does not depend on where the others are.

mod map;
mod measure;
mod modules;
mod plan;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use map::DeviceMap;
pub use measure::{Step, measure};
pub use modules::{Scope, ScopeKind};
pub use plan::{Plan, Share, Short, plan};

/// One module of a model: a layer, or what stands beside the layers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The name of its span: `model.layers.3`.
    pub name: String,
    /// Bytes that it holds when the first iteration begins.
    pub weights: u64,
    /// The most that it holds beyond them while others work: its cache.
    pub cache: u64,
    /// What it takes beyond both at its peak.
    pub activations: u64,
    /// The most that the module before it hands on: on a device of its own it
    /// holds a copy of that.
    pub input: u64,
}

/// The modules of a model, measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modules {
    /// In the order in which they work.
    pub modules: Vec<Module>,
    /// The peak of each run of neighbours: at `[first][length - 1]`.
    pub peaks: Vec<Vec<u64>>,
    /// The most that is live outside of all modules. It stays with the first.
    pub outside: u64,
    /// The most that is live in spans that say `replicated = true`. Every device
    /// with layers has its own.
    pub replicated: u64,
}

impl Modules {
    /// The peak of a device that holds the modules from `first` up to, not
    /// including, `end`; 0 for none.
    pub fn peak(&self, first: usize, end: usize) -> u64 {
        let Some(last) = end.checked_sub(first + 1) else { return 0 };
        self.peaks.get(first).and_then(|peaks| peaks.get(last)).copied().unwrap_or(0)
    }

    /// The peak of all of them on one device.
    pub fn whole(&self) -> u64 {
        self.peak(0, self.modules.len())
    }
}
