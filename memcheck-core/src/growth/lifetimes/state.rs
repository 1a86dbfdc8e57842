//! The state of a group: quiet, growing or open.

use super::rate::{Certainty, Rate};
use super::{Open, PartPattern};

/// One pattern by which a group grows. The rate is per entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatternGrowth {
    pub(super) rate: Rate,
    pub(super) pattern: PartPattern,
    /// True if the level rises although the blocks die.
    pub(super) is_replaced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The group does not grow: another event should have come by now, and none has.
    Quiet,
    /// The group grows by the sum of these rates, or by more if `is_whole` is false.
    Grows { growth: Vec<PatternGrowth>, is_whole: bool },
    /// Undecided. A further look can help once the series has `until` entries.
    Open { open: Open, until: usize },
}

impl State {
    pub(super) fn grows(growth: PatternGrowth, is_whole: bool) -> Self {
        Self::Grows { growth: vec![growth], is_whole }
    }

    /// The sum of the rates, and whether it is all of the growth.
    pub(super) fn growth(&self) -> Option<(Rate, bool)> {
        match self {
            Self::Grows { growth, is_whole } => {
                Some((Rate::sum(growth.iter().map(|growth| &growth.rate)), *is_whole))
            }
            Self::Quiet | Self::Open { .. } => None,
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        *self == Self::Quiet
    }

    pub(super) fn is_exact(&self) -> bool {
        self.growth().is_some_and(|(rate, whole)| whole && rate.certainty == Certainty::Exact)
    }

    pub(super) fn is_regular(&self) -> bool {
        self.growth().is_some_and(|(rate, whole)| whole && rate.certainty <= Certainty::Growing)
    }
}
