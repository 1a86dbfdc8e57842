//! The decision that the judge makes about a history, and its budget of iterations.

use serde::{Deserialize, Serialize};

use super::rate::Rate;

/// The measured iterations of a test that does not set their number.
const MEASURED: u32 = 10;

/// The budget of iterations, and the two assumptions of the judge that follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Bounded memory has filled, or was emptied once, within this number of iterations.
    pub horizon: u32,
    /// A leak leaves a block at least once in this number of iterations.
    pub quiet: u32,
    /// The most iterations in all, including the warm-up.
    pub most: u32,
    /// No growth is decided before this number of iterations, because they cost little: a ring
    /// or a cache can be longer than the horizon.
    pub least: u32,
    /// Measured iterations. Growth that accelerates has their mean as its rate, which does not
    /// depend on the number of further iterations.
    pub measured: u32,
}

impl Budget {
    /// The assumptions that can be checked in `most` iterations, including the warm-up.
    pub fn of(most: u32) -> Self {
        let horizon = (u64::from(most) * 2 / 5).clamp(6, 160) as u32;
        Self { horizon, quiet: horizon.min(64), most, least: 0, measured: MEASURED }
    }

    /// The same for a test with this number of measured iterations.
    #[must_use]
    pub fn of_measured(self, measured: u32) -> Self {
        Self { measured, ..self }
    }

    /// All iterations run before growth is decided.
    #[must_use]
    pub fn to_the_end(self) -> Self {
        Self { least: self.most, ..self }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(402)
    }
}

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Memory does not grow.
    Clean {
        /// Iterations since the last birth of a block that stays, or all measured ones.
        quiet_for: u32,
    },
    /// Memory grows.
    Leak(Leak),
    /// This number of further iterations may decide.
    More(u32),
    /// The budget is spent, and the verdict is open.
    Open(Undecided),
}

/// Growth that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    /// The sum of the rates of all parts.
    pub rate: Rate,
    /// True if the rate is all of the growth, false if the growth is at least this rate.
    pub whole: bool,
    /// Iterations that the judge has seen, including the warm-up.
    pub through: u32,
    /// The groups that grow, the largest rate first. There is at least one.
    pub parts: Vec<Part>,
}

/// One group that grows in one pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The call site, if it is known and all blocks of the group have the same.
    pub site: Option<u32>,
    /// Bytes of a block, if all blocks of the group have the same size.
    pub size: Option<u64>,
    /// Growth in bytes per iteration.
    pub rate: Rate,
    /// The pattern of the growth.
    pub pattern: PartPattern,
    /// True if the level rises although the blocks die, as for a buffer replaced by a larger one.
    pub replaced: bool,
    /// Number of blocks of the group that were born in measured iterations and are live.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
}

/// How a group grows. Periods and distances are in iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartPattern {
    /// The same bytes in each period.
    Exact {
        /// Iterations after which the growth repeats.
        period: u32,
    },
    /// The same number of blocks in each period, with sizes that differ.
    Counted {
        /// Iterations after which the number repeats.
        period: u32,
        /// Blocks in a period.
        blocks: u64,
    },
    /// Growth without a regular rhythm.
    Mean,
    /// Each period adds more than the one before. The rate is the mean of measured iterations.
    Growing {
        /// Iterations after which the growth repeats.
        period: u32,
        /// Bytes that each period adds more than the one before; 0 if this number is not constant.
        more: u64,
    },
    /// Memory has risen in every iteration, by the rate or by more.
    Rising,
    /// A buffer or pool whose capacity grows by a factor. The rate is that of its content.
    Amortized {
        /// Bytes of the last enlargement that has filled up since.
        bytes: u64,
        /// Iterations until the enlargement was full, to within one iteration.
        distance: u32,
    },
}

/// Why a verdict is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// Growth goes on: the second half of the series grows by more than half as much as the first.
    GoesOn,
    /// Growth slows down.
    Slows,
    /// The level moves, but does not rise throughout.
    Moves,
    /// Blocks that stay were born in one or two entries only.
    Rare,
}

/// The figures of an open verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undecided {
    /// The reason why the verdict is open.
    pub open: Open,
    /// Iterations that the judge has seen, including the warm-up.
    pub through: u32,
    /// Number of blocks of the open groups that were born in measured iterations and are live.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// The growth is at least this rate if it goes on: the bytes that are left if all blocks die
    /// that still can, over the measured iterations. It is not a proof of growth. For a figure
    /// without blocks it is the highest value over the iterations.
    pub rate: Rate,
}
