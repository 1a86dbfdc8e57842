//! What a run with attribution knows beyond the figures: who holds the bytes.
//!
//! Types of the record. Stacks, scopes and tensors are names here; `unresolved`
//! has them as a test process measures them, with addresses in place of names.

#[cfg(test)]
pub(crate) mod builder;
mod unresolved;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::placement::Modules;
use crate::space::Space;
use crate::stack::Stack;
use crate::survivors::Group;

pub use unresolved::Unresolved;

/// The type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tensor {
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its element type: `f32`.
    pub dtype: String,
}

impl Tensor {
    /// Its elements.
    fn elements(&self) -> u128 {
        self.shape.iter().map(|&dim| u128::from(dim)).product()
    }
}

impl std::fmt::Display for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        write!(f, "[{}] {}", dims.join(","), self.dtype)
    }
}

/// A place in the program that allocates in one space: a call stack in a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The space.
    pub space: Space,
    /// Its call stack, by its place in [`Attribution::stacks`].
    pub stack: usize,
    /// The path of `tracing` spans; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The operation of candle that allocates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The tensor that is made, where it is one and its type is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<Tensor>,
    /// Allocations over the whole body.
    pub calls: u64,
    /// Bytes allocated over the whole body.
    pub bytes: u64,
    /// Allocations in the last iteration that it allocated in.
    pub last_calls: u64,
    /// Bytes allocated in that iteration.
    pub last_bytes: u64,
    /// That iteration, warm-up counted in, from 1; 0 is the set-up.
    pub last: u32,
}

/// What bytes are for, as far as the evidence goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
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

impl Kind {
    /// The kind of bytes that were allocated in iteration `birth` and are live in
    /// iteration `now`, by their age alone; 0 is the set-up.
    pub fn by_age(birth: u32, now: u32) -> Self {
        match () {
            () if birth == 0 => Self::Setup,
            () if birth < now => Self::Kept,
            () => Self::Activations,
        }
    }

    /// The kind of bytes of this age that `stack` allocated.
    #[must_use]
    pub fn on(self, stack: &Stack) -> Self {
        match () {
            // An optimizer's `backward_step` is both, and what it allocates in
            // the backward pass is gradients.
            () if stack.is_backward() => Self::Gradients,
            () if stack.is_optimizer() => Self::Optimizer,
            () => self,
        }
    }

    /// As reports name it.
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

/// Bytes that a place held at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The place, by its place in [`Attribution::places`].
    pub place: usize,
    /// What they are for.
    pub kind: Kind,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
}

/// The peak of one space. The bytes of the holders add up to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peak {
    /// `peak_allocated`, as the order of events has it.
    pub bytes: u64,
    /// The iteration that it fell in, warm-up counted in, from 1; 0 is the set-up.
    pub iteration: u32,
    /// Who held it, the largest first.
    pub holders: Vec<Holder>,
    /// Events that one point of the timeline stands for.
    pub stretch: u64,
    /// Live bytes over the events of the body: the highest of each stretch.
    pub timeline: Vec<u64>,
}

/// An allocation that the device had no memory for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The call stack that asked for it, by its place in [`Attribution::stacks`].
    pub stack: usize,
    /// The path of `tracing` spans.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Bytes asked for.
    pub requested: u64,
    /// Who held what was live at that moment, the largest first.
    pub holders: Vec<Holder>,
}

/// Survivors of the measured iterations that one place allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivors {
    /// The space.
    pub space: Space,
    /// Their call stack, by its place in [`Attribution::stacks`].
    pub stack: usize,
    /// The path of `tracing` spans.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The types of tensor among them, those of the most elements first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<Tensor>,
    /// When they were born.
    pub group: Group,
    /// What is known of the tensors that hold them.
    #[serde(default)]
    pub held: HeldBy,
}

/// Who holds surviving blocks, as the tensors that are live at the end tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    /// Blocks that a tensor of their whole size holds.
    pub whole: u64,
    /// Blocks that only views of a part hold.
    pub views: u64,
    /// Bytes of the largest such view.
    pub view_bytes: u64,
    /// Blocks of which a tensor is part of a graph: it remembers its inputs
    /// for `backward`.
    pub graph: u64,
    /// Blocks that a variable holds.
    pub variables: u64,
}

impl HeldBy {
    /// Adds the blocks of another place.
    fn join(&mut self, other: Self) {
        self.whole += other.whole;
        self.views += other.views;
        self.view_bytes = self.view_bytes.max(other.view_bytes);
        self.graph += other.graph;
        self.variables += other.variables;
    }
}

/// Everything that a run with attribution adds to its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// Call stacks.
    pub stacks: Vec<Stack>,
    /// Places that allocated.
    pub places: Vec<Place>,
    /// The peaks by space.
    pub peaks: BTreeMap<Space, Peak>,
    /// The last allocation that was refused, by space.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<Space, Refused>,
    /// Survivors by place.
    pub survivors: Vec<Survivors>,
    /// Who held what was still live when the body had returned.
    pub retained: Vec<Holder>,
    /// Devices of candle that were opened in the measured iterations, by the
    /// GPU that they are on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<Space, u64>,
    /// What each module of the model on the test's own device holds, where that
    /// was asked for and the model has layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<Modules>,
    /// Events that the log for `modules` had no place for: with any there are none.
    #[serde(default)]
    pub unlogged: u64,
    /// Allocations and frees that were followed.
    pub events: u64,
    /// What limits the names: no line tables, say, and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Attribution {
    /// The call stack of a place.
    pub fn stack_of(&self, place: &Place) -> &Stack {
        const NONE: &Stack = &Stack { frames: Vec::new() };
        self.stacks.get(place.stack).unwrap_or(NONE)
    }
}
