//! The largest size that a capacity holds, by a law.

use super::{Law, Sizes};

/// What a law says of a size and a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Largest {
    /// This one fits, and the next does not.
    Upto(u64),
    /// The figure does not grow with this size.
    Any,
    /// Not even the smallest size for which the law holds.
    Nothing,
}

/// The largest value of `param` at which `law` stays within `capacity`, with the
/// other sizes as in `fixed`. It speaks of sizes for which the law holds, and is
/// a prediction: only a run confirms it. A size that is neither `param` nor in
/// `fixed` counts as 0.
pub fn largest(law: &Law, param: &str, fixed: &Sizes, capacity: u64) -> Largest {
    let mut sizes = fixed.clone();
    let mut fits = |value: u64| {
        sizes.insert(param.to_owned(), value);
        // What is beyond every number of bytes fits nowhere.
        law.at(&sizes).is_some_and(|bytes| bytes <= capacity)
    };
    let smallest = law.from.get(param).copied().unwrap_or(1);
    if !fits(smallest) {
        return Largest::Nothing;
    }
    let (mut within, mut beyond) = (smallest, smallest.saturating_mul(2).max(2));
    while fits(beyond) {
        if beyond > u64::MAX / 2 {
            return Largest::Any;
        }
        (within, beyond) = (beyond, beyond * 2);
    }
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if fits(middle) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    // Past the largest size whose bytes can be counted there is no telling.
    let grows = law.terms().any(|(monomial, _)| monomial.power(param) > 0);
    if grows { Largest::Upto(within) } else { Largest::Any }
}
