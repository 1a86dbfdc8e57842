//! A log of the single events of one space, from which a plan is measured.

use memcheck_core::space::Space;
use memcheck_ledger::block::Block;
use memcheck_ledger::events::Event;

/// The most events that are stored, which need about 400 MB.
const MAX_EVENTS: usize = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) context: u32,
    pub(crate) birth: u32,
    pub(crate) size: u64,
    pub(crate) is_allocation: bool,
    /// The iteration in which it happened; 0 is outside of iterations.
    pub(crate) iteration: u32,
}

#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) space: Space,
    pub(crate) events: Vec<Logged>,
    /// The number of events that did not fit.
    pub(crate) lost: u64,
    most: usize,
    iteration: u32,
}

impl Log {
    pub(crate) fn new(space: Space) -> Self {
        Self::with_limit(space, MAX_EVENTS)
    }

    fn with_limit(space: Space, most: usize) -> Self {
        Self { space, events: Vec::new(), lost: 0, most, iteration: 0 }
    }

    /// Stores an event if it belongs to the space.
    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Allocated(block) | Event::Kept(block) => self.add(&block, true),
            Event::Freed(block) => self.add(&block, false),
            Event::Iteration(iteration) => self.iteration = iteration,
            Event::Refused(_) | Event::Shaped(..) | Event::End => {}
        }
    }

    fn add(&mut self, block: &Block, is_allocation: bool) {
        if block.space != self.space {
            return;
        }
        if self.events.len() == self.most {
            self.lost += 1;
            return;
        }
        let (context, birth) = (block.origin.context, block.origin.birth);
        let iteration = self.iteration;
        self.events.push(Logged { context, birth, size: block.size, is_allocation, iteration });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_ledger::block::Origin;

    #[test]
    fn a_full_log_counts_the_events_that_do_not_fit() {
        let space = Space::Cuda(0);
        let block = |space, size| Block { size, space, origin: Origin::default() };
        let mut log = Log::with_limit(space, 2);
        log.take(Event::Allocated(block(space, 4)));
        log.take(Event::Allocated(block(Space::Host, 5)));
        log.take(Event::Freed(block(space, 4)));
        assert_eq!((log.events.len(), log.lost), (2, 0));
        log.take(Event::Allocated(block(space, 6)));
        log.take(Event::Kept(block(Space::Host, 7)));
        log.take(Event::Freed(block(space, 6)));
        assert_eq!((log.events.len(), log.lost), (2, 2));
    }
}
