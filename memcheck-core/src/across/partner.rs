//! Which test a relative limit means.

use std::collections::BTreeMap;

use crate::bound::Relative;
use crate::law::Fraction;

/// Why a relative limit means no test, or can never hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartnerError {
    /// No such test.
    #[error("`max_peak` of `{test}` is `{limit}`, and {binary} has no test `{}`{near}", .limit.test)]
    Unknown {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
        /// Where the other was looked for, for people.
        binary: String,
        /// What is near, for people; may be empty.
        near: String,
    },
    /// Several tests.
    #[error(
        "`max_peak` of `{test}` is `{limit}`, and `{}` is one of {}: write more of its path",
        .limit.test, quoted(.among)
    )]
    Ambiguous {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
        /// The paths that end so.
        among: Vec<String>,
    },
    /// The very test.
    #[error(
        "`max_peak` of `{test}` is `{limit}`, which is a share of its own peak: name another \
         test, or leave this one out of what the limit is said for"
    )]
    Itself {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
    },
    /// Tests that limit each other to less than they need.
    #[error(
        "`max_peak` of these tests goes in a circle that nothing but 0 B satisfies: {}",
        .0.join(", ")
    )]
    Circle(Vec<String>),
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The test of `binary` that `limit` of `test` means: the one of that path, else
/// the only one whose path ends so.
///
/// # Errors
/// When there is none, more than one, or it is `test` itself.
pub fn partner<'a>(
    test: &str,
    limit: &Relative,
    binary: &str,
    tests: impl Iterator<Item = &'a str> + Clone,
) -> Result<&'a str, PartnerError> {
    let end = format!("::{}", limit.test);
    let exact = tests.clone().find(|name| *name == limit.test);
    let among: Vec<&str> = match exact {
        Some(exact) => vec![exact],
        None => tests.clone().filter(|name| name.ends_with(&end)).collect(),
    };
    let (test, limit) = (test.to_owned(), Box::new(limit.clone()));
    match among.as_slice() {
        [only] if *only == test => Err(PartnerError::Itself { test, limit }),
        [only] => Ok(only),
        [] => {
            let near = near(&limit.test, tests);
            Err(PartnerError::Unknown { test, limit, binary: binary.to_owned(), near })
        }
        several => {
            let among = several.iter().map(|name| (*name).to_owned()).collect();
            Err(PartnerError::Ambiguous { test, limit, among })
        }
    }
}

/// Tests that have the name in their path: those of its cases, say.
fn near<'a>(name: &str, tests: impl Iterator<Item = &'a str>) -> String {
    let last = name.rsplit("::").next().unwrap_or(name);
    let near: Vec<String> =
        tests.filter(|test| test.contains(last)).take(4).map(str::to_owned).collect();
    match near.as_slice() {
        [] => ": it is looked for in the same test target".to_owned(),
        near => format!(", but {}", quoted(near)),
    }
}

/// A circle of limits that cannot hold: each test with the one it is limited by
/// and the factor. Where the factors multiply to 1 or more, tests may well be
/// limited by each other.
pub fn circle(limits: &BTreeMap<&str, (&str, Fraction)>) -> Option<PartnerError> {
    for &start in limits.keys() {
        let (mut at, mut product) = (start, Fraction::whole(1));
        let mut way = Vec::new();
        while let Some(&(next, factor)) = limits.get(at) {
            way.push(format!("`{at}` of `{next}`"));
            let Some(multiplied) = product.times(factor) else { break };
            (at, product) = (next, multiplied);
            if at == start {
                let falls = Fraction::whole(1).minus(product).is_some_and(Fraction::is_positive);
                if falls {
                    return Some(PartnerError::Circle(way));
                }
                break;
            }
            // A circle that `start` only leads into is found from inside.
            if way.len() > limits.len() {
                break;
            }
        }
    }
    None
}
