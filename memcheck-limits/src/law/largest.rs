//! The largest size that fits into a capacity by a law.

use super::{Law, Sizes};
use crate::search::{Search, Start};

/// The answer of a law for a size and a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Largest {
    /// This value fits, and the next one does not.
    Upto(u64),
    /// Every value fits, because the figure does not grow with this size.
    Any,
    /// Even the smallest value for which the law holds does not fit.
    None,
}

/// Returns the largest value of `param` at which `law` stays within `capacity`; `fixed` has the
/// values of the other sizes. Only values are considered for which the law holds.
///
/// The result is a prediction, which only a run can confirm. A size that is neither `param` nor in
/// `fixed` counts as 0.
pub fn largest(law: &Law, param: &str, fixed: &Sizes, capacity: u64) -> Largest {
    let mut sizes = fixed.clone();
    let mut fits = |value: u64| {
        sizes.insert(param.to_owned(), value);
        law.is_within(&sizes, capacity)
    };
    let smallest = law.from.get(param).map_or(1, |&from| from.max(1));
    let Ok(mut search) = Search::new(smallest..=u64::MAX, Start::Lowest) else {
        return Largest::None;
    };
    while let Some(value) = search.next() {
        search.tried(value, fits(value));
    }
    // Only a law that contains `param` has a largest value of it.
    let grows = law.terms().any(|(monomial, _)| monomial.power(param) > 0);
    match (search.largest(), search.failed()) {
        (None, _) => Largest::None,
        (Some(upto), Some(_)) if grows => Largest::Upto(upto),
        (Some(_), _) => Largest::Any,
    }
}
