//! Judges whether a program leaks, from the births and deaths of its blocks.
//!
//! Ten iterations cannot tell a ring of twelve from a leak, nor see a leak that begins in the
//! sixth. Iterations are cheap, so [`step`] asks for more of them until it can decide:
//!
//! ```text
//! Clean   nothing grows, and nothing happened again within the time in which it must have
//! Leak    it grows, by the sum of its parts; `whole` if nothing else is open beside them
//! More    further iterations may decide
//! Open    the budget is spent
//! ```
//!
//! What is left of births that are older than any block that ever died is *settled*. Growth
//! shows as settled births that go on (`judge_blocks`), or as a level of live bytes that rises
//! although its blocks die, such as a buffer that is enlarged (`judge_level`). Blocks are judged
//! by size and by call site (`tree`), so that a leak is separated from what comes and goes.
//!
//! Two numbers state what is assumed ([`Budget`]). The *horizon*: what is bounded has filled, or
//! was emptied once, within so many iterations. *Quiet*: what leaks does so at least once in so
//! many iterations, and begins within the first so many. Programs that violate them look like
//! their opposite; no judge can separate two programs that did the same so far.

mod amortised;
mod decision;
mod events;
mod exact;
mod group;
mod history;
mod irregular;
mod judge_blocks;
mod judge_level;
mod kind;
#[cfg(any(test, feature = "programs"))]
pub mod programs;
mod rate;
mod runs;
mod series;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod tree;

pub use decision::{Budget, Decision, Leak, Open, Part, Pattern, Undecided};
pub use history::{History, Living};
pub use rate::{Certainty, Rate};
pub use series::Series;
pub use step::step;
