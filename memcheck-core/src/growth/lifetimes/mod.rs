//! Judges whether a program leaks, from the births and deaths of its blocks.
//!
//! Ten iterations cannot distinguish a ring buffer of twelve blocks from a leak, and they cannot
//! show a leak that begins in the sixth. Iterations are cheap, so [`step`] asks for more of them
//! until it can decide:
//!
//! ```text
//! Clean   memory does not grow: growth would have had another event by now, and it had none
//! Leak    memory grows, by the sum of its parts; `whole` if no other part is open
//! More    further iterations may decide
//! Open    the budget is spent
//! ```
//!
//! The terms of the model:
//!
//! - A *kind* is all blocks of one size and one call site. A *group* is a set of kinds that are
//!   judged together: one size, one call site, or all blocks of a memory space.
//! - An *entry* of a series stands for one iteration, or for several in long runs (`history`).
//! - A birth is *settled* once it is older than the greatest age at which a block of its group
//!   died. Its live blocks have outlived all blocks that died, so they are expected to stay.
//!   Younger blocks prove nothing, because they may still die.
//! - The *level* is the number of live bytes at the end of each entry. A *record* is an entry
//!   in which the level is higher than ever before.
//! - An *event* of blocks is an entry with settled births that are still live. An event of a
//!   level is a record.
//! - A rate is *whole* if it is all of the growth. Otherwise the growth is at least this rate.
//!
//! Growth shows in one of two ways. Either blocks that stay continue to be born (`judge_blocks`),
//! or the level rises although all blocks die, because a buffer is replaced by a larger one again
//! and again (`judge_level`). `tree` judges blocks by size and by call site, so that a leak is
//! separated from memory that comes and goes.
//!
//! [`Budget`] states two assumptions. The *horizon*: bounded memory has filled, or was emptied
//! once, within this number of iterations. *Quiet*: a leak begins within this number of
//! iterations, and its events are at most this number of iterations apart. A program that
//! violates an assumption can get the opposite verdict, because no judge can separate two
//! programs that have done the same so far.

mod amortized;
mod bounded;
mod decision;
mod enlarged;
mod events;
mod exact;
mod group;
mod history;
mod irregular;
mod judge_blocks;
mod judge_group;
mod judge_level;
mod kind;
mod measures;
mod misses;
#[cfg(any(test, feature = "programs"))]
pub mod programs;
mod progression;
mod rate;
mod replaced;
mod runs;
mod separate;
mod series;
mod state;
mod step;
mod step_level;
mod tables;
#[cfg(test)]
mod tests;
mod tree;

pub use decision::{Budget, Decision, Leak, Open, Part, PartPattern, Undecided};
pub use history::History;
pub use memcheck_limits::living::Living;
pub use rate::{Certainty, Rate};
pub use series::Series;
pub use step::step;
pub use step_level::step_level;
