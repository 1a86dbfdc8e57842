//! The events of one space, one by one: what a plan is measured by.

use memcheck_core::space::Space;

use super::Event;
use crate::block::Block;

/// Events that are kept at most, some 400 MB of them.
const MOST: usize = 1 << 24;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) context: u32,
    pub(crate) birth: u32,
    pub(crate) size: u64,
    pub(crate) came: bool,
    /// The iteration that it happened in; 0 is outside of them.
    pub(crate) iteration: u32,
}

/// The events of a space.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) space: Space,
    pub(crate) events: Vec<Logged>,
    /// Whether there were more than are kept.
    pub(crate) is_full: bool,
    iteration: u32,
}

impl Log {
    /// A log of `space`.
    pub(crate) fn of(space: Space) -> Self {
        Self { space, events: Vec::new(), is_full: false, iteration: 0 }
    }

    /// Keeps what belongs into it.
    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Allocated(block) | Event::Kept(block) => self.add(&block, true),
            Event::Freed(block) => self.add(&block, false),
            Event::Iteration(iteration) => self.iteration = iteration,
            Event::Refused(_) | Event::Shaped(..) | Event::End => {}
        }
    }

    fn add(&mut self, block: &Block, came: bool) {
        if block.space != self.space {
            return;
        }
        if self.events.len() == MOST {
            self.is_full = true;
            return;
        }
        let (context, birth) = (block.origin.context, block.origin.birth);
        let iteration = self.iteration;
        self.events.push(Logged { context, birth, size: block.size, came, iteration });
    }
}
