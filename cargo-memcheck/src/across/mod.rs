//! What is judged across tests, between the run and its presentation: limits
//! relative to another test, and laws over the cases of one.
//!
//! ```text
//! tests of a leg -> needs    whose figures each test wants, before anything runs
//! outcomes       -> judge    findings and laws, once those figures are there
//! laws           -> snapshot the baseline that keeps them
//! ```
//!
//! A test that wants figures of others is told once all of its leg have ended. The
//! shards of a run leave that to `report --merge`, which has all of them.

mod judge;
mod needs;
mod snapshot;

pub(crate) use judge::{Judge, Seen, join};
pub(crate) use needs::{law_baselines, needs};
