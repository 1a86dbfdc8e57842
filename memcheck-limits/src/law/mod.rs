//! Laws: the exact dependence of a figure on the sizes of a test's cases.
//!
//! Memory over a size is a series of whole numbers. If the series is a polynomial, exact arithmetic
//! finds its coefficients: `peak = 31.2 MiB + 1.50 KiB*seq + 16 B*seq^2`. The law gives the order of
//! growth, which `scaling(…)` limits, and the largest size for a capacity.
//!
//! ```text
//! points -> find -> law -> order, largest
//! ```

mod find;
mod fraction;
mod largest;
mod order;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::serialize_as_text;
use crate::size::Size;

pub use find::{NoLaw, Point, find};
pub use fraction::Fraction;
pub use largest::{Largest, largest};
pub use order::{MOST, Monomial, Order, OrderError};

/// Values of sizes by name: `batch` is 4, `seq` is 128.
pub type Sizes = BTreeMap<String, u64>;

/// A figure as a polynomial of sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Law {
    /// Never contains a coefficient of 0.
    terms: BTreeMap<Monomial, Fraction>,
    /// The smallest values for which the law holds. A size for which it always holds is absent.
    from: Sizes,
}

impl Law {
    /// Creates the law with these coefficients.
    pub fn new(terms: impl IntoIterator<Item = (Monomial, Fraction)>) -> Self {
        let terms = terms.into_iter().filter(|(_, coefficient)| !coefficient.is_zero());
        Self { terms: terms.collect(), from: Sizes::new() }
    }

    /// Returns the terms, the constant first.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, Fraction)> {
        self.terms.iter().map(|(monomial, coefficient)| (monomial, *coefficient))
    }

    /// Returns the coefficient of a product of sizes.
    pub fn coefficient(&self, of: &Monomial) -> Fraction {
        self.terms.get(of).copied().unwrap_or(Fraction::ZERO)
    }

    /// Returns the smallest values for which the law holds. A size for which it always holds is
    /// absent.
    pub fn from(&self) -> &Sizes {
        &self.from
    }

    /// Returns the figure at these sizes, rounded up; `None` if it overflows. A size that is not
    /// given counts as 0.
    pub fn at(&self, sizes: &Sizes) -> Option<u64> {
        self.exact(sizes)?.ceiling()
    }

    /// Returns the figure at these sizes, which can be negative; `None` if it overflows.
    fn exact(&self, sizes: &Sizes) -> Option<Fraction> {
        let mut sum = Fraction::ZERO;
        for (monomial, coefficient) in self.terms() {
            let mut product = coefficient;
            for (size, power) in monomial.powers() {
                let value = Fraction::whole(sizes.get(size).copied().unwrap_or(0));
                for _ in 0..power {
                    product = product.times(value)?;
                }
            }
            sum = sum.plus(product)?;
        }
        Some(sum)
    }

    /// True if the figure at these sizes is at most `capacity`.
    ///
    /// The comparison is exact unless the figure overflows 128 bits. An overflow does not imply
    /// that the figure is large, because a term can be negative. Floating point then decides, which
    /// cannot overflow at such sizes.
    fn is_within(&self, sizes: &Sizes, capacity: u64) -> bool {
        match self.exact(sizes) {
            Some(figure) => figure.ceiling().is_some_and(|figure| figure <= capacity),
            None => self.approximate(sizes) <= capacity as f64,
        }
    }

    /// Returns the figure at these sizes in floating point.
    fn approximate(&self, sizes: &Sizes) -> f64 {
        let terms = self.terms().map(|(monomial, coefficient)| {
            let powers = monomial.powers().map(|(size, power)| {
                let value = sizes.get(size).copied().unwrap_or(0);
                libm::pow(value as f64, f64::from(power))
            });
            coefficient.approximate() * powers.product::<f64>()
        });
        terms.sum()
    }

    /// Returns the order of growth. Terms with a negative coefficient are not growth.
    pub fn order(&self) -> Order {
        let rising = self.terms().filter(|(_, coefficient)| coefficient.is_positive());
        Order::of_sum(rising.map(|(monomial, _)| monomial.clone()))
    }

    /// Formats the law for people, in bytes: `31.2 MiB + 1.50 KiB*seq + 16 B*seq^2`.
    pub fn in_bytes(&self) -> String {
        self.format_terms(|coefficient| match (coefficient.denominator(), coefficient.floor()) {
            (1, Some(bytes)) => Size(bytes).to_string(),
            _ => format!("{coefficient} B"),
        })
    }

    /// Formats the law for people, as a count: `12 + 3*seq`.
    pub fn in_counts(&self) -> String {
        self.format_terms(|coefficient| coefficient.to_string())
    }

    /// Formats the terms with their signs, and the smallest sizes for which the law holds.
    fn format_terms(&self, amount: impl Fn(Fraction) -> String) -> String {
        let mut text = String::new();
        for (monomial, coefficient) in self.terms() {
            let is_negative = !coefficient.is_positive();
            text.push_str(match (text.is_empty(), is_negative) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            });
            let without_sign = Fraction::ZERO.minus(coefficient).filter(|_| is_negative);
            text.push_str(&amount(without_sign.unwrap_or(coefficient)));
            if monomial.degree() > 0 {
                text.push_str(&format!("*{monomial}"));
            }
        }
        if text.is_empty() {
            text = amount(Fraction::ZERO);
        }
        if !self.from.is_empty() {
            let from: Vec<String> =
                self.from.iter().map(|(size, value)| format!("{size} >= {value}")).collect();
            text.push_str(&format!(" for {}", from.join(", ")));
        }
        text
    }
}

/// Formats the law exactly: `32715776 + 1536*seq + 16*seq^2 for seq >= 128`.
impl std::fmt::Display for Law {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.in_counts())
    }
}

/// The error of a text that is not a law.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a law such as `4096 + 16*seq^2`")]
pub struct LawError(String);

impl std::str::FromStr for Law {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let error = || LawError(text.to_owned());
        let (sum, from) = match text.split_once(" for ") {
            Some((sum, from)) => (sum, Some(from)),
            None => (text, None),
        };
        let mut terms: BTreeMap<Monomial, Fraction> = BTreeMap::new();
        // Every sign except the first has a space on both sides.
        for summand in sum.replace(" - ", " + -").split(" + ") {
            let (amount, monomial) = summand.split_once('*').unwrap_or((summand, "1"));
            let coefficient: Fraction = amount.parse().map_err(|()| error())?;
            let monomial: Monomial = monomial.parse().map_err(|_| error())?;
            if terms.insert(monomial, coefficient).is_some() {
                return Err(error());
            }
        }
        let mut law = Self::new(terms);
        for bound in from.into_iter().flat_map(|from| from.split(", ")) {
            let (size, value) = bound.split_once(" >= ").ok_or_else(error)?;
            law.from.insert(size.to_owned(), value.parse().map_err(|_| error())?);
        }
        Ok(law)
    }
}

serialize_as_text!(Law);
