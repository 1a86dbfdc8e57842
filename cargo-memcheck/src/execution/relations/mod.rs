//! Judges limits and laws that involve several tests: limits relative to another test, and laws
//! over the cases of one test. This happens between the run and its presentation.
//!
//! ```text
//! tests of a leg -> needs    whose figures each test wants, before anything runs
//! outcomes       -> judge    findings and laws, once those figures are there
//! laws           -> snapshot the baseline that keeps them
//! ```
//!
//! A test that needs the figures of others is presented once all tests of its leg have ended. The
//! shards of a run leave these judgements to `report --merge`, because only the merge has the tests
//! of all shards.

mod judge;
mod needs;
mod snapshot;

pub(crate) use judge::{Judge, MeasuredFigures};
pub(crate) use needs::needs;
