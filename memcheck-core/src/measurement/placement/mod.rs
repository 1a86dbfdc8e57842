//! Assigns the layers of a model to devices, for a model that no single device can hold. The input
//! is the measured memory of each module, and the output is a device map.
//!
//! ```text
//! scopes ──► modules   which span is a layer, which a part next to the layers
//! steps  ──► measure   the peak of every run of neighboring modules, exactly
//! peaks  ──► plan      which of them goes to which device: the smallest maximum
//!                      ──► map (JSON, as Hugging Face's accelerate writes it)
//! ```
//!
//! The peaks of single modules do not add up, because one layer is at its peak while others wait.
//! Every run of neighbors is therefore measured as if a device held only these.

mod map;
mod measure;
mod modules;
mod plan;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use map::DeviceMap;
pub use measure::{Step, measure};
pub use modules::{ModuleScope, ScopeKind};
pub use plan::{DeviceShare, Plan, Short, plan};

/// One module of a model: a layer, or a part outside of the layers such as the embeddings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The name of its span: `model.layers.3`.
    pub name: String,
    /// Bytes that it holds when the first iteration begins.
    pub weights: u64,
    /// The most bytes that it holds in addition to the weights while other modules work: its cache.
    pub cache: u64,
    /// The bytes that it takes at its peak, in addition to weights and cache.
    pub activations: u64,
    /// The most bytes that the previous module passes to it; a device's first module copies them.
    pub input: u64,
}

/// The measured modules of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modules {
    /// The modules, in the order in which they work.
    pub modules: Vec<Module>,
    /// The peak of each run of neighbors, at `[first][length - 1]`.
    pub peaks: Vec<Vec<u64>>,
    /// The most bytes live outside of all modules; they stay on the first module's device.
    pub outside: u64,
    /// The most bytes live in spans with `replicated = true`, copied to every device with layers.
    pub replicated: u64,
}

impl Modules {
    /// The peak of a device that holds the modules `first..end`; 0 for an empty range.
    pub fn peak(&self, first: usize, end: usize) -> u64 {
        let Some(last) = end.checked_sub(first + 1) else { return 0 };
        self.peaks.get(first).and_then(|peaks| peaks.get(last)).copied().unwrap_or(0)
    }

    /// The peak of one device that holds all modules.
    pub fn whole(&self) -> u64 {
        self.peak(0, self.modules.len())
    }
}
