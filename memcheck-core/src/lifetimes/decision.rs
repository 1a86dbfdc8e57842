//! The decision that a look at a history leads to.

use serde::{Deserialize, Serialize};

use super::rate::Rate;

/// The two assumptions of the judge, and the budget that they follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// What is bounded has filled, or was emptied once, within so many iterations.
    pub horizon: u32,
    /// What leaks does so at least once in so many iterations.
    pub quiet: u32,
    /// Iterations in all at most, warm-up included.
    pub most: u32,
}

impl Budget {
    /// The assumptions that `most` iterations in all, warm-up included, can be checked for.
    pub fn of(most: u32) -> Self {
        let horizon = (u64::from(most) * 2 / 5).clamp(6, 160) as u32;
        Self { horizon, quiet: horizon.min(64), most }
    }
}

impl Default for Budget {
    /// At most 400 measured iterations after 2 of warm-up.
    fn default() -> Self {
        Self::of(402)
    }
}

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Nothing grows.
    Clean {
        /// Iterations without growth that the verdict holds for.
        quiet_for: u32,
    },
    /// Memory grows.
    Leak(Leak),
    /// So many further iterations may decide.
    More(u32),
    /// The budget is spent, and the verdict is open.
    Open(Undecided),
}

/// Growth that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    /// The sum of the rates of all parts.
    pub rate: Rate,
    /// True if the rate is all of the growth, false if it is at least so much.
    pub whole: bool,
    /// Iterations that it was seen for, warm-up included.
    pub through: u32,
    /// The groups that grow, the largest rate first. There is at least one.
    pub parts: Vec<Part>,
}

/// One group that grows in one pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The call site, if it is known and the same for all blocks of the group.
    pub site: Option<u32>,
    /// Bytes of a block, if all blocks of the group are alike.
    pub size: Option<u64>,
    /// Growth in bytes per iteration.
    pub rate: Rate,
    /// The pattern of its growth.
    pub pattern: Pattern,
    /// True if the level rises although its blocks die: a buffer that is replaced by a larger
    /// one, or a queue that is filled faster than it is emptied.
    pub replaced: bool,
    /// Blocks of the group that were born in measured iterations and are live.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How a group grows. Periods and distances are in iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// The same bytes in each period.
    Exact {
        /// Iterations after which it repeats.
        period: u32,
    },
    /// The same number of blocks in each period, of sizes that differ.
    Counted {
        /// Iterations after which the number repeats.
        period: u32,
        /// Blocks in a period.
        blocks: u64,
    },
    /// In no regular rhythm.
    Mean,
    /// More by the same amount in each period than in the one before.
    Growing {
        /// Iterations after which it repeats.
        period: u32,
        /// By how many bytes more.
        more: u64,
    },
    /// A buffer or pool whose capacity grows by a factor, so that the rate is that of its content.
    Amortised {
        /// The last enlargement that has filled up since.
        bytes: u64,
        /// Iterations that this took, give or take one.
        distance: u32,
    },
}

/// Why a verdict is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// Blocks that stay go on to come, at more than half the rate of before.
    GoesOn,
    /// They come more and more rarely.
    Slows,
    /// The level moves, but does not rise throughout.
    Moves,
}

/// What is known of an open verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undecided {
    /// Why it is open.
    pub open: Open,
    /// Iterations that it was followed for, warm-up included.
    pub through: u32,
    /// Blocks of the open groups that were born in measured iterations and are live.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The mean rate of these bytes over the measured iterations. It is not a proof of growth.
    pub rate: Rate,
}
