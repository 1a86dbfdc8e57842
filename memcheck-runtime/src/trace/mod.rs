//! The stream of events of a run with attribution, folded while it flows.
//!
//! ```text
//! ledger ──push──► ring ──► collector (a thread of its own) ──► Trace
//! any thread       bounded  live bytes by (space, context, shape, birth)
//! ```
//!
//! What is kept does not grow with the number of events: totals for each place
//! in the program, what was live at the peak, and a timeline of fixed length. For
//! a plan alone the events of one device are kept one by one, up to a number.
//! Pushing takes no lock and allocates nothing; a full ring makes the pushing
//! thread wait until the collector has caught up.

mod collector;
mod fold;
mod log;
mod ring;
mod timeline;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::block::Block;

pub(crate) use collector::{Collector, start};
pub(crate) use fold::{Held, Key, Refused, Trace};
pub(crate) use log::{Log, Logged};
pub(crate) use timeline::Timeline;

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A block was allocated.
    Allocated(Block),
    /// A block was freed.
    Freed(Block),
    /// A block whose free was refused is live after all.
    Kept(Block),
    /// The device had no memory for a block.
    Refused(Block),
    /// The tensor of a block is known now: its shape.
    Shaped(Block, u16),
    /// An iteration begins; 0 says that the last one is over.
    Iteration(u32),
    /// No more events.
    End,
}

static ON: AtomicBool = AtomicBool::new(false);
/// There is no collector any more: it died, or this process was forked from one
/// that has it. Nobody will make room.
static GONE: AtomicBool = AtomicBool::new(false);

/// Whether events are wanted. One relaxed load: what an ordinary run pays.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Hands an event on, where events are wanted. PERF: only there it is made.
#[inline]
pub(crate) fn push(event: impl FnOnce() -> Event) {
    if is_on() {
        ring::push(event());
    }
}

/// Hands two events on that nothing comes between.
#[inline]
pub(crate) fn push_pair(events: impl FnOnce() -> (Event, Event)) {
    if is_on() {
        let (first, second) = events();
        ring::push_pair(first, second);
    }
}
