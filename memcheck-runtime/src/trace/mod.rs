//! The stream of events of a run with attribution, which is folded while the run goes on.
//!
//! ```text
//! ledger ──push──► events ──► collector (a thread of its own) ──► Trace
//! any thread       bounded    live bytes by (space, context, shape, birth)
//! ```
//!
//! The stored data does not grow with the number of events: it consists of totals for each place in
//! the program, the memory that was live at the peak, a timeline of fixed length, and the births
//! and deaths of the largest blocks, up to a fixed number. Only a run for a plan stores the single
//! events of one device, up to a fixed number.

mod collector;
mod fold;
mod largest;
mod lifetimes;
mod log;
mod timeline;

pub(crate) use collector::{Collector, start};
pub(crate) use fold::{Held, Key, RefusedEvent, Trace};
pub(crate) use largest::{LiveSite, ask};
pub(crate) use lifetimes::LifetimeRecorder;
pub(crate) use log::{Log, Logged};
pub(crate) use timeline::Timeline;
