//! The pattern of a group, with its figures and its description in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::size::{Size, both};

/// A kind of growth, or a kind of bounded memory that looks like growth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// The same number of bytes in every iteration.
    Steady,
    /// The same number of bytes in every k-th iteration.
    Periodic,
    /// More bytes each time than before.
    Growing,
    /// More memory after every iteration than before, in a run that ended early.
    Rising,
    /// Blocks in some iterations up to the end, without a regular order or a regular size.
    Irregular,
    /// A buffer replaced by a larger one in every k-th iteration; only the newest survives.
    Enlarged,
    /// A cache that filled and then stopped.
    Filled,
    /// A ring that replaces its oldest block, or a list that is flushed.
    Replaced,
    /// Blocks of the last iteration or two only: double buffering.
    LastKept,
    /// A buffer whose capacity grows by a factor, such as a `Vec` that is appended to.
    #[serde(rename = "amortised")]
    Amortized,
    /// A buffer that is as large as the largest input seen so far.
    Ratchet,
    /// Blocks of one iteration only.
    #[default]
    Once,
}

/// The growth of one group and its pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The kind of growth.
    pub pattern: Pattern,
    /// Growth in bytes per iteration, 0 unless it goes on. A small share can be rounded down to 0.
    pub bytes_per_iteration: u64,
    /// Iterations from one occurrence to the next: 1 unless the growth is periodic.
    pub period: u64,
    /// The bytes added each time for growth, held at the end otherwise. For `Growing`, the increase
    /// from one time to the next, or 0 if it is not constant. For `Enlarged`, 0 if the steps differ.
    pub bytes: u64,
    /// The measured iteration, counted from 1, of the last occurrence; 0 for growth.
    pub last: u64,
    /// Number of groups with this reading: 1, unless readings were added up.
    pub groups: u64,
}

impl Reading {
    /// The reading in one line, with its figures.
    pub fn describe(&self) -> String {
        self.to_string()
    }

    /// True if the group grows.
    pub fn grows(&self) -> bool {
        self.bytes_per_iteration > 0
    }

    /// The reading of a group that has the blocks of both groups. Its growth is the sum.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        match (self.grows(), other.grows()) {
            (true, false) => self,
            (false, true) => other,
            _ if (self.pattern, self.period) == (other.pattern, other.period) => {
                let is_known = self.pattern != Pattern::Growing || self.bytes.min(other.bytes) > 0;
                let sum = self.plus(other);
                let bytes = if is_known { sum.bytes } else { 0 };
                Self { groups: self.groups.max(other.groups), bytes, ..sum }
            }
            (true, true) => Self {
                pattern: Pattern::Irregular,
                period: 1,
                bytes: self.bytes_per_iteration + other.bytes_per_iteration,
                groups: self.groups.max(other.groups),
                ..self.plus(other)
            },
            (false, false) => {
                let larger = if self.bytes >= other.bytes { self } else { other };
                Self { groups: self.groups.max(other.groups), ..larger }
            }
        }
    }

    /// What readings must share to be added up, so that descriptions differ in bytes only.
    pub fn kind(&self) -> (Pattern, u64, bool, Option<u64>) {
        let has_last = matches!(self.pattern, Pattern::Filled | Pattern::Once);
        (self.pattern, self.period, self.bytes == 0, has_last.then_some(self.last))
    }

    /// The sum of two readings, which must have the same [kind](Self::kind).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes_per_iteration: self.bytes_per_iteration + other.bytes_per_iteration,
            bytes: self.bytes + other.bytes,
            last: self.last.max(other.last),
            groups: self.groups + other.groups,
            ..self
        }
    }

    /// How growth accelerates, in words; `None` if it does not.
    pub fn acceleration(&self) -> Option<String> {
        let more = match self.bytes {
            0 => "more".to_owned(),
            bytes => format!("{} more", both(bytes)),
        };
        (self.pattern == Pattern::Growing).then(|| match self.period {
            0 | 1 => format!("adds {more} in each iteration than in the one before"),
            period => {
                format!("adds {more} in every {period} iterations than in the {period} before")
            }
        })
    }

    /// Its period in words, such as "every 2nd iteration".
    pub fn every(&self) -> String {
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
            Pattern::Steady => write!(f, "steady, {rate} per iteration"),
            Pattern::Periodic => write!(f, "{bytes} in {every}, {rate} per iteration"),
            Pattern::Growing => {
                let faster = self.acceleration().unwrap_or_default();
                write!(f, "{faster}, {rate} per iteration on average in the measured iterations")
            }
            Pattern::Rising => write!(f, "rises in {every}, by at least {rate}"),
            Pattern::Irregular => {
                write!(f, "irregular, {rate} per iteration on average")
            }
            Pattern::Enlarged if self.bytes == 0 => {
                write!(f, "replaced by larger ones now and then, {rate} per iteration on average")
            }
            // There can be several in a period.
            Pattern::Enlarged if self.period > 1 => write!(
                f,
                "replaced by larger ones, {bytes} more in {every}: {rate} per iteration on average"
            ),
            Pattern::Enlarged if self.groups > 1 => {
                write!(f, "replaced by larger ones, {bytes} more in {every}")
            }
            Pattern::Enlarged => write!(f, "replaced by one larger by {rate} in {every}"),
            Pattern::Filled => {
                write!(f, "filled to {held} and stopped after iteration {}", self.last)
            }
            Pattern::Replaced => write!(f, "replaced continuously, never more than before: {held}"),
            Pattern::LastKept => write!(f, "kept from the last iterations only: {held}"),
            Pattern::Amortized => write!(
                f,
                "enlarged by a factor whenever it is full: the content grows by about {rate} per \
                 iteration"
            ),
            Pattern::Ratchet if self.groups > 1 => {
                write!(f, "grow with the largest input seen, to {held}")
            }
            Pattern::Ratchet => write!(f, "grows with the largest input seen, to {held}"),
            Pattern::Once if self.last == 0 => write!(f, "no block of the iterations survives"),
            Pattern::Once => write!(f, "once, {held} in iteration {}", self.last),
        }
    }
}

fn ordinal(number: u64) -> &'static str {
    match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}
