//! The largest size that a capacity holds, by a law.

use super::{Law, Sizes};
use crate::search::{Search, Start};

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
    let smallest = law.from.get(param).map_or(1, |&from| from.max(1));
    let Ok(mut search) = Search::new(smallest..=u64::MAX, Start::Lowest) else {
        return Largest::Nothing;
    };
    while let Some(value) = search.next() {
        search.tried(value, fits(value));
    }
    // Past the largest size whose bytes can be counted there is no telling.
    let grows = law.terms().any(|(monomial, _)| monomial.power(param) > 0);
    match (search.largest(), search.failed()) {
        (None, _) => Largest::Nothing,
        (Some(upto), Some(_)) if grows => Largest::Upto(upto),
        (Some(_), _) => Largest::Any,
    }
}
