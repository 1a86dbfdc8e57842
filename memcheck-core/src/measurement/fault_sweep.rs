//! The result of a fault sweep: the device allocations of one iteration were refused in turn, and
//! each refusal was followed by an iteration without one.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::measurement::stack::{Frame, Sources, Stack};
use crate::size::{counted, exact};
use crate::space::Space;

/// A sweep over the device allocations of one iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepResult {
    /// The device allocations of the iteration.
    pub allocations: u64,
    /// The allocations that were to be refused.
    pub selected: u64,
    /// The allocations that were refused.
    pub refused: u64,
    /// The refusals after which the body returned an error.
    pub errors: u64,
    /// The refusals after which the body returned without an error.
    pub recovered: u64,
    /// The reason why the sweep ended before all selected allocations were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// True if iterations without a refusal differ from each other, so that memory after a refusal
    /// could not be compared.
    #[serde(default)]
    pub unsteady: bool,
    /// The refusals that the body did not survive unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<UnsafeAllocation>,
    /// The folders of the sources, while the call stacks are addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
}

/// A refusal that the body did not survive unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsafeAllocation {
    /// The number of the allocation in its iteration, from 1.
    pub number: u64,
    /// The bytes that were requested.
    pub requested: u64,
    /// The call stack of the request.
    pub calls: Calls,
    /// The effect of the refusal.
    pub effect: Effect,
}

/// The effect of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Effect {
    /// Memory was still live after the next iteration.
    Left {
        /// The space of the memory.
        space: Space,
        /// The bytes in all.
        bytes: u64,
        /// The blocks by call stack, the most bytes first. They can be fewer than `bytes`.
        blocks: Vec<LeftBlocks>,
    },
    /// The body panicked.
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// The body had not returned after this time.
    Hung {
        /// Seconds.
        seconds: u64,
    },
    /// The process ended while the body ran.
    Ended,
    /// The next iteration measured other figures than an iteration before the refusal.
    Differs {
        /// The space of the figure.
        space: Space,
        /// The name of the figure.
        figure: String,
        /// Its value before the refusal.
        before: u64,
        /// Its value in the next iteration.
        after: u64,
    },
    /// The next iteration failed.
    NextFailed {
        /// The error, or the message of the panic.
        error: String,
    },
}

/// Blocks of one call stack that stayed live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBlocks {
    /// Their call stack.
    pub calls: Calls,
    /// Their bytes.
    pub bytes: u64,
    /// Their number.
    pub count: u64,
}

/// A call stack. A test process leaves it as addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calls {
    /// Addresses in the executable, the innermost first.
    Addresses(Vec<u64>),
    /// The functions.
    Named(Stack),
}

impl Calls {
    /// The stack; empty while it has no names.
    pub fn stack(&self) -> Stack {
        match self {
            Self::Addresses(_) => Stack::default(),
            Self::Named(stack) => stack.clone(),
        }
    }
}

impl SweepResult {
    /// Names the call stacks with `lookup`. Has no effect if they have names already.
    pub fn resolve(&mut self, mut lookup: impl FnMut(u64) -> Vec<Frame>) {
        let Some(sources) = self.sources.take() else { return };
        let mut known: HashMap<u64, Vec<Frame>> = HashMap::new();
        for calls in self.failures.iter_mut().flat_map(UnsafeAllocation::stacks) {
            let Calls::Addresses(addresses) = calls else { continue };
            let frames = addresses.iter().flat_map(|&call| {
                let named = known.entry(call).or_insert_with(|| {
                    lookup(call).into_iter().map(|frame| sources.qualify(frame)).collect()
                });
                named.clone()
            });
            *calls = Calls::Named(Stack::trimmed(frames));
        }
    }

    /// A sentence for people: `each of 42 device allocations of an iteration was refused once: 40
    /// returned errors, 2 recovered`.
    pub fn sentence(&self) -> String {
        let Self { allocations, refused, errors, recovered, .. } = self;
        let of = counted(*allocations, "device allocation", "device allocations");
        let mut sentence = match refused == allocations {
            true if *allocations == 0 => "the iteration makes no device allocation".to_owned(),
            true if *allocations == 1 => {
                "the only device allocation of an iteration was refused once".to_owned()
            }
            true => format!("each of {of} of an iteration was refused once"),
            false => format!("{} of {of} of an iteration were refused once", exact(*refused)),
        };
        if *refused > 0 {
            let error = if *errors == 1 { "an error" } else { "errors" };
            let ends = [
                (*errors > 0).then(|| format!("{} returned {error}", exact(*errors))),
                (*recovered > 0).then(|| format!("{} recovered", exact(*recovered))),
            ];
            let ends: Vec<String> = ends.into_iter().flatten().collect();
            if !ends.is_empty() {
                sentence.push_str(&format!(": {}", ends.join(", ")));
            }
        }
        if self.unsteady {
            sentence
                .push_str("; iterations differ without a refusal too, so memory was not compared");
        }
        if let Some(ended) = &self.ended {
            sentence.push_str(&format!("; the sweep ended early: {ended}"));
        }
        sentence
    }
}

impl UnsafeAllocation {
    fn stacks(&mut self) -> impl Iterator<Item = &mut Calls> {
        let blocks = match &mut self.effect {
            Effect::Left { blocks, .. } => blocks.as_mut_slice(),
            _ => &mut [],
        };
        std::iter::once(&mut self.calls).chain(blocks.iter_mut().map(|left| &mut left.calls))
    }
}
