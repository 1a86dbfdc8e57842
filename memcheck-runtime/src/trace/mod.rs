//! The stream of events of a run with attribution, which is folded while the run goes on.
//!
//! ```text
//! ledger ──push──► ring ──► collector (a thread of its own) ──► Trace
//! any thread       bounded  live bytes by (space, context, shape, birth)
//! ```
//!
//! The stored data does not grow with the number of events: it consists of totals for each place in
//! the program, the memory that was live at the peak, a timeline of fixed length, and the births
//! and deaths of the largest blocks, up to a fixed number. Only a run for a plan stores the single events of one device, up to a fixed number. A push takes no lock
//! and allocates no memory. If the ring is full, the pushing thread waits until the collector has
//! caught up.

mod collector;
mod fold;
mod largest;
mod lifetimes;
mod log;
mod ring;
mod timeline;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::block::Block;

pub(crate) use collector::{Collector, start};
pub(crate) use fold::{Held, Key, RefusedEvent, Trace};
pub(crate) use largest::{LiveSite, ask};
pub(crate) use lifetimes::LifetimeRecorder;
pub(crate) use log::{Log, Logged};
pub(crate) use timeline::Timeline;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Allocated(Block),
    Freed(Block),
    /// The driver refused to free a block, which is live again.
    Kept(Block),
    /// The device had no memory for a block.
    Refused(Block),
    /// The shape of a block's tensor was found.
    Shaped(Block, u16),
    /// An iteration begins; 0 means that the last one has ended.
    Iteration(u32),
    End,
}

static ON: AtomicBool = AtomicBool::new(false);
/// True if the collector does not exist any more, because it panicked or because this process is a
/// forked child. A thread that waits for room in the ring must give up.
static ENDED: AtomicBool = AtomicBool::new(false);

/// True if events are recorded. An ordinary run pays for one relaxed load.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Pushes an event if events are recorded. PERF: the event is created only then.
#[inline]
pub(crate) fn push(event: impl FnOnce() -> Event) {
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
