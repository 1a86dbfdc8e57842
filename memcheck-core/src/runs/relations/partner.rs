//! Finds the test that a relative limit refers to, and tests that exclude each other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::bound::Relative;
use crate::law::Fraction;

/// The reason why tests cannot be judged together: a relative limit does not refer to one other test
/// or can never hold, or two tests would write the same baseline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelationError {
    /// The test does not exist.
    #[error("`max_peak` of `{test}` is `{limit}`, and {binary} has no test `{}`{near}", .limit.test)]
    Unknown {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
        /// The test target that was searched, for people.
        binary: String,
        /// Tests with a similar path, for people.
        near: String,
    },
    /// Several tests match.
    #[error(
        "`max_peak` of `{test}` is `{limit}`, and `{}` is one of {}: write more of its path",
        .limit.test, quoted(.among)
    )]
    Ambiguous {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
        /// The matching paths.
        among: Vec<String>,
    },
    /// The limit refers to its own test.
    #[error(
        "`max_peak` of `{test}` is `{limit}`, which is a share of its own peak: name another \
         test, or exclude this test from the limit"
    )]
    Itself {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
    },
    /// The test does not run on the same device.
    #[error("`max_peak` of `{test}` is `{limit}`, and `{other}` does not run on {device}")]
    Elsewhere {
        /// The test that has the limit.
        test: String,
        /// The limit.
        limit: Box<Relative>,
        /// The test that the limit refers to.
        other: String,
        /// The device of the test that has the limit.
        device: String,
    },
    /// Tests limit each other so that only peaks of 0 B satisfy all limits.
    #[error(
        "`max_peak` of these tests is a cycle that only 0 B satisfies: {}",
        .0.join(", ")
    )]
    Circle(Vec<String>),
    /// Two tests have the same baseline, because `::` and `__` are equal in the name of a file.
    #[error("`{test}` and `{other}` have the same baseline, {}", .baseline.display())]
    SameBaseline {
        /// One test.
        test: String,
        /// The other test.
        other: String,
        /// The path of the baseline.
        baseline: PathBuf,
    },
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The one other test that has the path in `limit`, or else whose path ends with it.
pub fn partner<'a>(
    test: &str,
    limit: &Relative,
    binary: &str,
    tests: impl Iterator<Item = &'a str> + Clone,
) -> Result<&'a str, RelationError> {
    let end = format!("::{}", limit.test);
    let exact = tests.clone().find(|name| *name == limit.test);
    let among: Vec<&str> = match exact {
        Some(exact) => vec![exact],
        None => tests.clone().filter(|name| name.ends_with(&end)).collect(),
    };
    let (test, limit) = (test.to_owned(), Box::new(limit.clone()));
    match among.as_slice() {
        [only] if *only == test => Err(RelationError::Itself { test, limit }),
        [only] => Ok(only),
        [] => {
            let near = near(&limit.test, tests);
            Err(RelationError::Unknown { test, limit, binary: binary.to_owned(), near })
        }
        several => {
            let among = several.iter().map(|name| (*name).to_owned()).collect();
            Err(RelationError::Ambiguous { test, limit, among })
        }
    }
}

fn near<'a>(name: &str, tests: impl Iterator<Item = &'a str>) -> String {
    let last = name.rsplit("::").next().unwrap_or(name);
    let near: Vec<String> =
        tests.filter(|test| test.contains(last)).take(4).map(str::to_owned).collect();
    match near.as_slice() {
        [] => ": memcheck searches the same test target".to_owned(),
        near => format!(", but {}", quoted(near)),
    }
}

/// The cycle of `limits`, of partner and factor, whose factors multiply to less than 1.
pub fn circle(limits: &BTreeMap<&str, (&str, Fraction)>) -> Option<RelationError> {
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
                    return Some(RelationError::Circle(way));
                }
                break;
            }
            // A circle that does not contain `start` is found from one of its own tests.
            if way.len() > limits.len() {
                break;
            }
        }
    }
    None
}
