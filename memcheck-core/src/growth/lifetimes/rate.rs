//! Growth in bytes per iteration, as a fraction of whole numbers.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How certain the figure of a [`Rate`] is, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The growth repeats exactly, so the rate holds for any number of iterations.
    Exact,
    /// The number of blocks repeats exactly, but their sizes differ. The rate is a mean of bytes.
    Counted,
    /// Each period adds more than the one before. The rate is the mean of the measured iterations.
    Growing,
    /// Growth comes in irregular iterations. The rate is a mean.
    Mean,
    /// A buffer or pool is enlarged at growing intervals. The rate is that of its content.
    Amortized,
}

/// Bytes per iteration in lowest terms. Only [`Rate::rounded`] and the `Display` form round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    bytes: u128,
    iterations: u128,
    /// How certain the figure is.
    pub certainty: Certainty,
}

/// The denominator of a sum whose exact denominator would overflow.
const COARSE: u128 = 1 << 30;

/// The highest numerator, so that a comparison with a limit cannot overflow.
const HIGHEST: u128 = 1 << 100;

impl Rate {
    /// A rate of exactly zero.
    pub const ZERO: Self = Self { bytes: 0, iterations: 1, certainty: Certainty::Exact };

    /// The rate of `bytes` in `iterations`. There must be at least one iteration; 0 is read as 1.
    pub fn new(bytes: u128, iterations: u128, certainty: Certainty) -> Self {
        let iterations = iterations.max(1);
        let common = greatest_common_divisor(bytes, iterations).max(1);
        Self { bytes: (bytes / common).min(HIGHEST), iterations: iterations / common, certainty }
    }

    /// The numerator in bytes.
    pub fn bytes(&self) -> u128 {
        self.bytes
    }

    /// The denominator in iterations.
    pub fn iterations(&self) -> u128 {
        self.iterations
    }

    /// True if the rate is zero.
    pub fn is_zero(&self) -> bool {
        self.bytes == 0
    }

    /// True if the rate is above `limit` bytes per iteration.
    pub fn exceeds(&self, limit: u64) -> bool {
        // This is `bytes > limit x iterations`, computed so that it cannot overflow.
        let whole = self.bytes / self.iterations;
        match whole.cmp(&u128::from(limit)) {
            Ordering::Greater => true,
            Ordering::Equal => !self.bytes.is_multiple_of(self.iterations),
            Ordering::Less => false,
        }
    }

    /// Whole bytes per iteration, rounded, but at least 1 if the rate is not zero.
    pub fn rounded(&self) -> u64 {
        let (whole, rest) = (self.bytes / self.iterations, self.bytes % self.iterations);
        let nearest = whole + u128::from(rest >= self.iterations - rest);
        u64::try_from(nearest.max(u128::from(self.bytes > 0))).unwrap_or(u64::MAX)
    }

    /// The rate as a floating-point number, for estimates.
    pub fn approximate(&self) -> f64 {
        self.bytes as f64 / self.iterations as f64
    }

    /// The sum of both rates, with the certainty of the less certain one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let certainty = self.certainty.max(other.certainty);
        if other.is_zero() || self.is_zero() {
            let larger = if self.is_zero() { other } else { self };
            return Self { certainty, ..*larger };
        }
        let common = greatest_common_divisor(self.iterations, other.iterations);
        let (of_self, of_other) = (other.iterations / common, self.iterations / common);
        let sum = || {
            let bytes =
                self.bytes.checked_mul(of_self)?.checked_add(other.bytes.checked_mul(of_other)?)?;
            let iterations = self.iterations.checked_mul(of_self)?;
            (bytes < HIGHEST).then(|| Self::new(bytes, iterations, certainty))
        };
        sum().unwrap_or_else(|| {
            Self::new(self.coarse().saturating_add(other.coarse()), COARSE, certainty)
        })
    }

    /// The sum of the rates, added in order.
    pub fn sum<'a>(rates: impl IntoIterator<Item = &'a Self>) -> Self {
        rates.into_iter().fold(Self::ZERO, |sum, rate| sum.plus(rate))
    }

    /// Converts a rate per entry into a rate per iteration, for entries of `iterations` each.
    pub(super) fn per(&self, iterations: u32) -> Self {
        Self::new(
            self.bytes,
            self.iterations.saturating_mul(u128::from(iterations)),
            self.certainty,
        )
    }

    fn coarse(&self) -> u128 {
        let (whole, rest) = (self.bytes / self.iterations, self.bytes % self.iterations);
        let part = rest.checked_mul(COARSE).map_or(0, |rest| rest / self.iterations);
        whole.saturating_mul(COARSE).saturating_add(part)
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (left, right) = (self.bytes / self.iterations, other.bytes / other.iterations);
        let by_whole = left.cmp(&right);
        if by_whole != Ordering::Equal {
            return Some(by_whole);
        }
        let (left, right) = (self.bytes % self.iterations, other.bytes % other.iterations);
        match (left.checked_mul(other.iterations), right.checked_mul(self.iterations)) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => self.coarse().partial_cmp(&other.coarse()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.rounded())
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
