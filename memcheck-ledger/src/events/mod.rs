//! The events of a run with attribution, as a stream from all threads to the one that folds them.
//!
//! A push takes no lock and allocates no memory. If the ring is full, the pushing thread waits until
//! the folding thread has caught up.

mod ring;

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};

use crate::block::Block;

pub use ring::{map, take};

/// What happened to a block, or to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A block was allocated.
    Allocated(Block),
    /// A block was freed.
    Freed(Block),
    /// The driver refused to free a block, which is live again.
    Kept(Block),
    /// The device had no memory for a block.
    Refused(Block),
    /// The shape of a block's tensor was found.
    Shaped(Block, u16),
    /// An iteration begins; 0 means that the last one has ended.
    Iteration(u32),
    /// The last event.
    End,
}

static ON: AtomicBool = AtomicBool::new(false);
/// True if nobody takes events any more, because the thread that took them panicked or because this
/// process is a forked child. A thread that waits for room in the ring must give up.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Starts or stops recording events. [`map`] must have been called before the first start.
pub fn record(on: bool) {
    ON.store(on, SeqCst);
}

/// Stops recording events, because nobody takes them any more.
pub fn abandon() {
    ON.store(false, SeqCst);
    ENDED.store(true, SeqCst);
}

/// True if events are recorded. An ordinary run pays for one relaxed load.
#[inline]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Pushes an event if events are recorded. PERF: the event is created only then.
#[inline]
pub fn push(event: impl FnOnce() -> Event) {
    if is_on() {
        ring::push(event());
    }
}

/// Pushes two events that are consecutive in the order of all threads, if events are recorded.
#[inline]
pub(crate) fn push_pair(events: impl FnOnce() -> (Event, Event)) {
    if is_on() {
        let (first, second) = events();
        ring::push_pair(first, second);
    }
}
