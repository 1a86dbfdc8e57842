//! Laws: how a figure depends on the sizes of a test's cases, exactly.
//!
//! Memory over a size is a series of whole numbers. Where it is a polynomial its
//! coefficients are found by exact arithmetic and printed:
//! `peak = 31.2 MiB + 1.5 KiB*seq + 16 B*seq^2`. From the law follow the order of
//! growth, which `scaling(…)` bounds, and the largest size for a capacity.
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

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::size::Size;

pub use find::{NoLaw, Point, find};
pub use fraction::Fraction;
pub use largest::{Largest, largest};
pub use order::{MOST, Monomial, Order, OrderError};

/// Sizes by name: `batch` is 4, `seq` is 128.
pub type Sizes = BTreeMap<String, u64>;

/// A figure as a polynomial of sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Law {
    /// Coefficients that are not 0.
    terms: BTreeMap<Monomial, Fraction>,
    /// The smallest values for which it holds, where it does not hold for all.
    from: Sizes,
}

impl Law {
    /// The law with these coefficients.
    pub fn new(terms: impl IntoIterator<Item = (Monomial, Fraction)>) -> Self {
        let terms = terms.into_iter().filter(|(_, coefficient)| !coefficient.is_zero());
        Self { terms: terms.collect(), from: Sizes::new() }
    }

    /// Its terms, the constant first.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, Fraction)> {
        self.terms.iter().map(|(monomial, coefficient)| (monomial, *coefficient))
    }

    /// The coefficient of a product of sizes.
    pub fn coefficient(&self, of: &Monomial) -> Fraction {
        self.terms.get(of).copied().unwrap_or(Fraction::ZERO)
    }

    /// The smallest values for which it holds, of sizes for which there are some.
    pub fn from(&self) -> &Sizes {
        &self.from
    }

    /// The figure at these sizes, rounded up; `None` where it is beyond every
    /// figure. A size that is not given is 0.
    pub fn at(&self, sizes: &Sizes) -> Option<u64> {
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
        sum.ceiling()
    }

    /// How fast it grows. What it falls by is no growth.
    pub fn order(&self) -> Order {
        let rising = self.terms().filter(|(_, coefficient)| coefficient.is_positive());
        Order::of(rising.map(|(monomial, _)| monomial.clone()))
    }

    /// For people, in bytes: `31.2 MiB + 1.5 KiB*seq + 16 B*seq^2`.
    pub fn in_bytes(&self) -> String {
        self.written(|coefficient| match (coefficient.denominator(), coefficient.floor()) {
            (1, Some(bytes)) => Size(bytes).to_string(),
            _ => format!("{coefficient} B"),
        })
    }

    /// For people, as a count: `12 + 3*seq`.
    pub fn in_counts(&self) -> String {
        self.written(|coefficient| coefficient.to_string())
    }

    /// Its terms with their signs, and from where on it holds.
    fn written(&self, amount: impl Fn(Fraction) -> String) -> String {
        let mut text = String::new();
        for (monomial, coefficient) in self.terms() {
            let falls = !coefficient.is_positive();
            text.push_str(match (text.is_empty(), falls) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            });
            let without_sign = Fraction::ZERO.minus(coefficient).filter(|_| falls);
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

/// Exactly: `32715776 + 1536*seq + 16*seq^2 for seq >= 128`.
impl std::fmt::Display for Law {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.in_counts())
    }
}

/// Why a text is no law.
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
        // Every sign but the first stands between two spaces.
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

impl Serialize for Law {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Law {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
