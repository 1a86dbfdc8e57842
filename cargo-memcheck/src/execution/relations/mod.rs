//! Limits and laws that involve several tests: limits relative to another test, and laws over the
//! cases of one test.
//!
//! ```text
//! tests of a leg -> needs    whose figures each test wants, before anything runs
//! outcomes       -> judge    these figures, for the judgement in `memcheck_core::runs::relations`
//! ```
//!
//! A test that needs the figures of others is presented once all tests of its leg have ended. The
//! shards of a run leave these judgements to `report --merge`, because only the merge has the tests
//! of all shards.

mod judge;
mod needs;

pub(crate) use judge::MeasuredFigures;
pub(crate) use needs::needs;
