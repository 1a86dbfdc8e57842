//! What a group turned out to be, with its figures and in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::size::{Size, both};

/// A kind of growth, or of what only looks like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// The same number of bytes in every iteration.
    Steady,
    /// The same number of bytes in every k-th iteration.
    Periodic,
    /// More and more bytes an iteration.
    Growing,
    /// Blocks in some iterations up to the end, in no regular order or of no
    /// regular size.
    Irregular,
    /// A buffer that is replaced by a larger one in every iteration, or in
    /// every k-th: only the newest survives.
    Enlarged,
    /// A cache that filled and then stopped.
    Filled,
    /// A ring that replaces its oldest block, or a list that is flushed.
    Replaced,
    /// Only the last iteration or two: double buffering.
    LastKept,
    /// A buffer that is enlarged rarely, by a constant factor: a Vec.
    Amortised,
    /// A buffer that is as large as the largest input seen so far.
    Ratchet,
    /// Blocks of different sizes in too few iterations to tell.
    Sporadic,
    /// One iteration only: no rate can be told from it.
    Once,
}

impl Pattern {
    /// Whether this is growth that goes on.
    pub fn is_growth(self) -> bool {
        matches!(
            self,
            Self::Steady | Self::Periodic | Self::Growing | Self::Irregular | Self::Enlarged
        )
    }
}

/// What was made of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The kind of growth.
    pub pattern: Pattern,
    /// Bytes an iteration; 0 unless the growth goes on, and never 0 where it
    /// does, however rare.
    pub bytes_per_iteration: u64,
    /// Every how many iterations it happens: 1 unless it is periodic.
    pub period: u64,
    /// The figure of the pattern. What is added each time, for growth; by how
    /// much more each time, for `Growing` (0 where that varies); what is held
    /// at the end, for everything else.
    pub bytes: u64,
    /// The measured iteration, counted from 1, in which it last happened.
    pub last: u64,
    /// Groups that it is of: 1, unless readings were put together.
    pub groups: u64,
}

impl Reading {
    /// The reading in one line, with its figures.
    pub fn describe(&self) -> String {
        self.to_string()
    }

    /// What readings must have in common to be put together: all that is said
    /// of them but for their bytes.
    pub fn kind(&self) -> (Pattern, u64, bool, Option<u64>) {
        let says_last = matches!(self.pattern, Pattern::Filled | Pattern::Once);
        (self.pattern, self.period, self.bytes == 0, says_last.then_some(self.last))
    }

    /// The reading of both groups, which are of one [kind](Self::kind).
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes_per_iteration: self.bytes_per_iteration + other.bytes_per_iteration,
            bytes: self.bytes + other.bytes,
            last: self.last.max(other.last),
            groups: self.groups + other.groups,
            ..self
        }
    }

    /// How often, where it is growth.
    fn every(&self) -> String {
        match self.period {
            0 | 1 => "every iteration".to_owned(),
            period => format!("every {period}{} iteration", ordinal(period)),
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, bytes, held) =
            (both(self.bytes_per_iteration), both(self.bytes), Size(self.bytes));
        let every = self.every();
        match self.pattern {
            Pattern::Steady => write!(f, "steady, {rate} an iteration"),
            Pattern::Periodic => write!(f, "{bytes} in {every}, {rate} an iteration"),
            Pattern::Growing if self.bytes == 0 => {
                write!(f, "more in {every} than before, {rate} an iteration on average")
            }
            Pattern::Growing => write!(
                f,
                "quadratic, {bytes} more in {every} than before, {rate} an iteration on average"
            ),
            Pattern::Irregular => {
                write!(f, "in no regular order, {rate} an iteration on average")
            }
            Pattern::Enlarged if self.groups > 1 => {
                write!(f, "replaced by larger ones, {bytes} more in {every}")
            }
            Pattern::Enlarged if self.period > 1 => write!(
                f,
                "replaced by one larger by {bytes} in {every}, {rate} an iteration on average"
            ),
            Pattern::Enlarged => write!(f, "replaced by one larger by {rate} in {every}"),
            Pattern::Filled => {
                write!(f, "filled to {held} and stopped after iteration {}", self.last)
            }
            Pattern::Replaced => write!(f, "replaced as it goes, never more than before: {held}"),
            Pattern::LastKept => write!(f, "kept from the last iterations only: {held}"),
            Pattern::Amortised if self.groups > 1 => {
                write!(f, "Vec-like buffers that double, last to {held}")
            }
            Pattern::Amortised => write!(f, "a Vec-like buffer that doubles, last to {held}"),
            Pattern::Ratchet if self.groups > 1 => {
                write!(f, "grow with the largest input seen, to {held}")
            }
            Pattern::Ratchet => write!(f, "grows with the largest input seen, to {held}"),
            Pattern::Sporadic => write!(f, "{held} in a few iterations, too few to tell"),
            Pattern::Once if self.last == 0 => write!(f, "nothing of the iterations survives"),
            Pattern::Once => write!(f, "once, {held} in iteration {}", self.last),
        }
    }
}

/// The suffix of an ordinal number.
fn ordinal(number: u64) -> &'static str {
    match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}
