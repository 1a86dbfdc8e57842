//! The call sites that hold the bytes, which only a run with attribution has. These types contain
//! names; `unresolved` has addresses instead, as a test process measures them.

#[cfg(test)]
pub(crate) mod builder;
mod lifetimes;
mod unresolved;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::growth::survivors::Group;
use crate::measurement::placement::Modules;
use crate::measurement::stack::Stack;
use crate::space::Space;

pub use lifetimes::{Lifetime, Lifetimes, MOST_BLOCKS};
pub use unresolved::Unresolved;

/// The most candle devices that a run tells apart.
pub const MOST_DEVICES: usize = 256;

/// The type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tensor {
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// The element type, such as `f32`.
    pub dtype: String,
}

impl Tensor {
    fn elements(&self) -> u128 {
        self.shape.iter().fold(1, |elements: u128, &dim| elements.saturating_mul(dim.into()))
    }
}

impl std::fmt::Display for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        write!(f, "[{}] {}", dims.join(","), self.dtype)
    }
}

/// A call site in one space: a call stack, a scope and a tensor type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The space that it allocates in.
    pub space: Space,
    /// Its call stack, an index into [`Attribution::stacks`].
    pub stack: usize,
    /// The path of its `tracing` spans; empty if it is in no span.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The candle operation that allocates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The tensor that is made, if the allocation is for a tensor and its type is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<Tensor>,
    /// Allocations over the whole body.
    pub calls: u64,
    /// Bytes allocated over the whole body.
    pub bytes: u64,
    /// Allocations in the iteration [`Self::last`].
    pub last_calls: u64,
    /// Bytes allocated in that iteration.
    pub last_bytes: u64,
    /// The last iteration that it allocated in, from 1 with the warm-up; 0 is the set-up.
    pub last: u32,
}

/// The purpose of bytes, as far as age and call stack show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HolderKind {
    /// Allocated before the first iteration: weights, mostly.
    Setup,
    /// Allocated in the iteration of the peak by the forward pass.
    Activations,
    /// Allocated by `Tensor::backward`.
    Gradients,
    /// Allocated by an optimizer.
    Optimizer,
    /// Allocated in an iteration and still live in a later one.
    Kept,
}

impl HolderKind {
    /// The kind by age alone, for iterations of birth and of now; 0 is the set-up.
    pub fn by_age(birth: u32, now: u32) -> Self {
        match () {
            () if birth == 0 => Self::Setup,
            () if birth < now => Self::Kept,
            () => Self::Activations,
        }
    }

    /// Refines the kind by the functions on `stack`, the stack that allocated the bytes.
    #[must_use]
    pub fn on(self, stack: &Stack) -> Self {
        match () {
            // `backward_step` of an optimizer runs both, and its backward pass makes gradients.
            () if stack.is_backward() => Self::Gradients,
            () if stack.is_optimizer() => Self::Optimizer,
            () => self,
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Setup => "set-up",
            Self::Activations => "activations",
            Self::Gradients => "gradients",
            Self::Optimizer => "optimizer state",
            Self::Kept => "kept from earlier iterations",
        }
    }
}

/// The bytes that a call site held at one moment, for one purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The call site, an index into [`Attribution::places`].
    pub place: usize,
    /// The purpose of the bytes.
    pub kind: HolderKind,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
}

/// The peak of one space. The bytes of its holders add up to `bytes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peak {
    /// `peak_allocated`, computed from the sequence of events.
    pub bytes: u64,
    /// The iteration of the peak, counted from 1 with the warm-up included; 0 is the set-up.
    pub iteration: u32,
    /// The bytes that each call site held at the peak, the largest first.
    pub holders: Vec<Holder>,
    /// The number of events that one point of the timeline covers.
    pub stretch: u64,
    /// Live bytes over the events of the body: the highest value of each stretch of events.
    pub timeline: Vec<u64>,
    /// The births and deaths of its blocks; `None` in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetimes: Option<Lifetimes>,
}

/// An allocation that the device refused for lack of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The call stack that requested it, an index into [`Attribution::stacks`].
    pub stack: usize,
    /// The path of its `tracing` spans.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Bytes requested.
    pub requested: u64,
    /// The bytes that each call site held at that moment, the largest first.
    pub holders: Vec<Holder>,
}

/// Survivors of the measured iterations that one call stack allocated in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivors {
    /// The space.
    pub space: Space,
    /// Their call stack, an index into [`Attribution::stacks`].
    pub stack: usize,
    /// The path of its `tracing` spans.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The types of their tensors, those with the most elements first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<Tensor>,
    /// Their births, live bytes and growth by iteration.
    pub group: Group,
    /// The tensors that hold them, as far as they are known.
    #[serde(default)]
    pub held: HeldBy,
}

/// The owners of surviving blocks, as seen in the tensors that are live at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    /// Blocks that are held by a tensor of the block's full size.
    pub whole: u64,
    /// Blocks that are held only by views of a part of them.
    pub views: u64,
    /// Bytes of the largest such view.
    pub view_bytes: u64,
    /// Blocks with a tensor of a graph: it keeps references to its inputs for `backward`.
    pub graph: u64,
    /// Blocks that are held by a variable.
    pub variables: u64,
    /// Devices that measured iterations opened and whose tensors hold them.
    #[serde(default)]
    pub new_devices: u64,
    /// Bytes of the blocks that nothing holds, because the driver refused to free them.
    #[serde(default)]
    pub unfreed: u64,
}

impl HeldBy {
    fn join(&mut self, other: Self) {
        self.whole += other.whole;
        self.views += other.views;
        self.view_bytes = self.view_bytes.max(other.view_bytes);
        self.graph += other.graph;
        self.variables += other.variables;
        // They can be the same devices.
        self.new_devices = self.new_devices.max(other.new_devices);
        self.unfreed += other.unfreed;
    }
}

/// The part of a record that a run with attribution adds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// Call stacks.
    pub stacks: Vec<Stack>,
    /// The call sites that allocated.
    pub places: Vec<Place>,
    /// The peaks by space.
    pub peaks: BTreeMap<Space, Peak>,
    /// The last refused allocation of each space.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<Space, Refused>,
    /// Survivors by call stack and scope.
    pub survivors: Vec<Survivors>,
    /// The bytes that each call site held when the body had returned.
    pub retained: Vec<Holder>,
    /// The bytes that are live only because the driver refused to free them, by space.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unfreed: BTreeMap<Space, u64>,
    /// The number of candle devices that measured iterations opened, by the GPU that they are on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<Space, u64>,
    /// Bytes per module on the test's own device, if asked for and the model has layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<Modules>,
    /// Events that did not fit into the log for `modules`. If this is not 0, `modules` is `None`.
    #[serde(default)]
    pub unlogged: u64,
    /// Allocations and frees that the run followed.
    pub events: u64,
    /// The reason why names are incomplete, such as missing line tables, and the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Attribution {
    /// The call stack of a call site; an empty stack if its index is out of range.
    pub fn stack_of(&self, place: &Place) -> &Stack {
        self.stacks.get(place.stack).unwrap_or(Stack::EMPTY)
    }
}
