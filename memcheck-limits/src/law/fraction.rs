//! Exact fractions of two `i128`. A result that overflows is `None`, so that no law is found from a
//! number that has wrapped.

/// A fraction in lowest terms, with a positive denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: i128,
    denominator: i128,
}

impl Fraction {
    /// The number 0.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };

    /// Returns `numerator / denominator` in lowest terms; `None` for a denominator of 0.
    pub fn new(numerator: i128, denominator: i128) -> Option<Self> {
        let divisor = i128::try_from(gcd(numerator.unsigned_abs(), denominator.unsigned_abs()));
        let divisor = divisor.ok().filter(|&divisor| divisor != 0 && denominator != 0)?;
        let (numerator, denominator) = (numerator / divisor, denominator / divisor);
        if denominator > 0 {
            return Some(Self { numerator, denominator });
        }
        Some(Self { numerator: numerator.checked_neg()?, denominator: denominator.checked_neg()? })
    }

    /// Returns a whole number as a fraction.
    pub fn whole(number: u64) -> Self {
        Self { numerator: i128::from(number), denominator: 1 }
    }

    /// Returns the numerator.
    pub fn numerator(self) -> i128 {
        self.numerator
    }

    /// Returns the denominator, which is positive.
    pub fn denominator(self) -> i128 {
        self.denominator
    }

    /// Returns the nearest floating-point number.
    pub fn approximate(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// True if the fraction is 0.
    pub fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// True if the fraction is above 0.
    pub fn is_positive(self) -> bool {
        self.numerator > 0
    }

    /// Returns the sum; `None` if it overflows.
    pub fn plus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left.checked_add(right)?, self.denominator.checked_mul(other.denominator)?)
    }

    /// Returns the difference; `None` if it overflows.
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self { numerator: other.numerator.checked_neg()?, ..other })
    }

    /// Returns the product; `None` if it overflows. The factors are reduced crosswise first, so
    /// that fewer products overflow.
    pub fn times(self, other: Self) -> Option<Self> {
        let left = Self::new(self.numerator, other.denominator)?;
        let right = Self::new(other.numerator, self.denominator)?;
        Self::new(
            left.numerator.checked_mul(right.numerator)?,
            left.denominator.checked_mul(right.denominator)?,
        )
    }

    /// Returns the quotient; `None` if it overflows or `other` is 0.
    pub fn over(self, other: Self) -> Option<Self> {
        self.times(Self::new(other.denominator, other.numerator)?)
    }

    /// Returns the fraction rounded up to a whole number, or 0 if it is negative; `None` if it does
    /// not fit into a `u64`.
    pub fn ceiling(self) -> Option<u64> {
        let whole = self.numerator.div_euclid(self.denominator);
        let rest = self.numerator.rem_euclid(self.denominator);
        u64::try_from(whole.checked_add(i128::from(rest > 0))?.max(0)).ok()
    }

    /// Returns the fraction rounded down to a whole number, or 0 if it is negative; `None` if it
    /// does not fit into a `u64`.
    pub fn floor(self) -> Option<u64> {
        u64::try_from(self.numerator.div_euclid(self.denominator).max(0)).ok()
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Formats it as `3` or `-3/2`.
impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.denominator {
            1 => self.numerator.fmt(f),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl std::str::FromStr for Fraction {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let number = |text: &str| text.parse::<i128>().map_err(|_| ());
        Self::new(number(numerator)?, number(denominator)?).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_and_in_lowest_terms() {
        let half = Fraction::new(3, -6).unwrap();
        assert_eq!((half.to_string().as_str(), "-1/2".parse()), ("-1/2", Ok(half)));
        let third = Fraction::new(1, 3).unwrap();
        assert_eq!(half.plus(third).unwrap().to_string(), "-1/6");
        assert_eq!(half.times(third).unwrap().to_string(), "-1/6");
        assert_eq!(half.minus(half), Some(Fraction::ZERO));
        assert_eq!(third.over(half).unwrap().to_string(), "-2/3");
        assert_eq!(third.over(Fraction::ZERO), None);
    }

    #[test]
    fn an_overflow_is_none_and_never_wraps() {
        let large = Fraction::new(i128::MAX, 1).unwrap();
        assert_eq!(large.plus(Fraction::whole(1)), None);
        assert_eq!(large.times(large), None);
        assert_eq!(large.ceiling(), None);
        assert_eq!(Fraction::new(1, 0), None);
        // The negation of the lowest `i128` does not exist.
        assert_eq!(Fraction::new(i128::MIN, -1), None);
    }

    #[test]
    fn a_limit_is_rounded_down_and_a_need_up() {
        let bytes = Fraction::new(7, 2).unwrap();
        assert_eq!((bytes.floor(), bytes.ceiling()), (Some(3), Some(4)));
        let negative = Fraction::new(-7, 2).unwrap();
        assert_eq!((negative.floor(), negative.ceiling()), (Some(0), Some(0)));
    }
}
