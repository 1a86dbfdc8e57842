//! Orders of growth: `1`, `seq`, `batch*seq + seq^2`.

use std::collections::BTreeMap;

use crate::serialize_as_text;

/// The highest power that is parsed or found. Memory that grows with a higher power has not been
/// observed.
pub const MOST: u32 = 4;

/// A product of powers of sizes: `1`, `seq`, `batch*seq^2`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Monomial(BTreeMap<String, u32>);

impl Monomial {
    /// Creates the product of these powers and drops powers of 0.
    pub fn new(powers: impl IntoIterator<Item = (String, u32)>) -> Self {
        Self(powers.into_iter().filter(|(_, power)| *power > 0).collect())
    }

    /// Returns the power of a size; 0 if the product does not contain it.
    pub fn power(&self, size: &str) -> u32 {
        self.0.get(size).copied().unwrap_or(0)
    }

    /// Returns the sizes with their powers.
    pub fn powers(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(size, power)| (size.as_str(), *power))
    }

    /// Returns the sum of the powers.
    pub fn degree(&self) -> u32 {
        self.0.values().sum()
    }

    /// True if this product grows no faster than `other` for any sizes.
    pub fn divides(&self, other: &Self) -> bool {
        self.powers().all(|(size, power)| power <= other.power(size))
    }
}

/// Orders by degree and then by name, as people write a polynomial.
impl Ord for Monomial {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.degree(), &self.0).cmp(&(other.degree(), &other.0))
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Monomial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("1");
        }
        for (place, (size, power)) in self.powers().enumerate() {
            let times = if place > 0 { "*" } else { "" };
            match power {
                1 => write!(f, "{times}{size}")?,
                _ => write!(f, "{times}{size}^{power}")?,
            }
        }
        Ok(())
    }
}

/// The error of a text that is not an order of growth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an order of growth: write `1`, `seq`, `seq^2`, `batch*seq` or a sum of these"
)]
pub struct OrderError(String);

impl std::str::FromStr for Monomial {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Self, OrderError> {
        let error = || OrderError(text.trim().to_owned());
        let mut powers: BTreeMap<String, u32> = BTreeMap::new();
        if text.trim() == "1" {
            return Ok(Self(powers));
        }
        for factor in text.split('*').map(str::trim) {
            let (size, power) = match factor.split_once('^') {
                None => (factor, 1),
                Some((size, power)) => {
                    (size.trim_end(), power.trim().parse().map_err(|_| error())?)
                }
            };
            let known = powers.entry(size.to_owned()).or_default();
            *known = known.saturating_add(power);
            if !is_name(size) || power == 0 || *known > MOST {
                return Err(error());
            }
        }
        Ok(Self(powers))
    }
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || c == '_')
}

/// How fast a figure grows or may grow: a sum of products without factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order(Vec<Monomial>);

impl Order {
    /// Returns the order of the sum of these products. It drops each product that grows no faster
    /// than another one.
    pub fn of_sum(monomials: impl IntoIterator<Item = Monomial>) -> Self {
        let mut all: Vec<Monomial> = monomials.into_iter().collect();
        all.sort();
        all.dedup();
        let grows = |one: &Monomial| !all.iter().any(|other| one != other && one.divides(other));
        let mut order: Vec<Monomial> = all.iter().filter(|one| grows(one)).cloned().collect();
        if order.is_empty() {
            order.push(Monomial::default());
        }
        Self(order)
    }

    /// Returns the summands.
    pub fn monomials(&self) -> &[Monomial] {
        &self.0
    }

    /// True if `monomial` grows no faster than this order.
    pub fn admits(&self, monomial: &Monomial) -> bool {
        self.0.iter().any(|most| monomial.divides(most))
    }

    /// True if every summand of `other` grows no faster than this order.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|monomial| self.admits(monomial))
    }

    /// Returns the highest power of a size.
    pub fn power(&self, size: &str) -> u32 {
        self.0.iter().map(|monomial| monomial.power(size)).max().unwrap_or(0)
    }

    /// Returns the names of the sizes in this order.
    pub fn sizes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(Monomial::powers).map(|(size, _)| size)
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let summands: Vec<String> = self.0.iter().map(Monomial::to_string).collect();
        f.write_str(&summands.join(" + "))
    }
}

impl std::str::FromStr for Order {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Self, OrderError> {
        let summands: Result<Vec<Monomial>, OrderError> = text.split('+').map(str::parse).collect();
        summands.map(Self::of_sum).map_err(|_| OrderError(text.to_owned()))
    }
}

serialize_as_text!(Order);

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str) -> Order {
        text.parse().unwrap()
    }

    #[test]
    fn an_order_keeps_the_fastest_growing_terms() {
        for (written, shown) in [
            ("1", "1"),
            ("seq", "seq"),
            (" seq ^ 2 ", "seq^2"),
            ("seq*seq", "seq^2"),
            ("seq * batch", "batch*seq"),
            ("1 + seq + seq^2", "seq^2"),
            ("seq^2 + batch*seq + batch", "batch*seq + seq^2"),
        ] {
            assert_eq!(order(written).to_string(), shown);
        }
    }

    #[test]
    fn an_invalid_order_is_an_error_with_examples() {
        for text in ["", "2", "seq^", "seq^0", "seq^5", "seq^-1", "16*seq", "seq log", "a+", "*a"] {
            let error = text.parse::<Order>().expect_err(text).to_string();
            assert!(error.contains("`batch*seq`") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn an_order_covers_orders_that_grow_no_faster_in_any_size() {
        for (most, grows, admitted) in [
            ("seq", "1", true),
            ("seq", "seq", true),
            ("seq", "seq^2", false),
            ("seq", "batch", false),
            ("batch*seq", "batch + seq", true),
            ("batch + seq", "batch*seq", false),
            ("batch*seq + seq^2", "seq^2", true),
            ("1", "1", true),
            ("1", "seq", false),
        ] {
            assert_eq!(order(most).covers(&order(grows)), admitted, "{grows} <= {most}");
        }
    }
}
