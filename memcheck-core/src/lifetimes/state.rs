//! The state of a group: quiet, growing or open.

use super::rate::{Certainty, Rate};
use super::{Open, Pattern};

/// One pattern by which a group grows. The rate is per entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    pub(super) rate: Rate,
    pub(super) pattern: Pattern,
    /// The level rises although its blocks die.
    pub(super) is_replaced: bool,
}

/// What is known of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing grows, and what must have happened again has not.
    Quiet,
    /// It grows by the sum of these, or by more if something else of it is open.
    Grows { growth: Vec<Growth>, is_whole: bool },
    /// Undecided, at least until the series has so many entries.
    Open { open: Open, until: usize },
}

impl State {
    pub(super) fn grows(growth: Growth, is_whole: bool) -> Self {
        Self::Grows { growth: vec![growth], is_whole }
    }

    /// The certainty of growth, and whether it is whole.
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

    /// True if it grows exactly, and by nothing else.
    pub(super) fn is_exact(&self) -> bool {
        self.growth().is_some_and(|(rate, whole)| whole && rate.certainty == Certainty::Exact)
    }

    /// True if it grows in a regular rhythm, and by nothing else.
    pub(super) fn is_regular(&self) -> bool {
        self.growth().is_some_and(|(rate, whole)| whole && rate.certainty <= Certainty::Growing)
    }
}
