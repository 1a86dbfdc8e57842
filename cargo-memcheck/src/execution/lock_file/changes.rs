//! The packages that differ between two lock files.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{LockError, Package, by_slot, parse};

/// A package of a registry or of git whose version differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct PackageChange {
    pub(crate) package: String,
    /// The version before, for a git dependency with the commit. `None` if the package is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The version after. `None` if no package needs it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
}

impl PackageChange {
    fn new(name: &str, from: Option<&Package>, to: Option<&Package>) -> Self {
        let version = |package: Option<&Package>| package.map(Package::described);
        Self { package: name.to_owned(), from: version(from), to: version(to) }
    }
}

/// `pool 0.1.0 -> 0.1.1`, `pool 0.1.0 (new)` or `pool 0.1.0 (removed)`.
impl std::fmt::Display for PackageChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { package, from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) => write!(f, "{package} {from} -> {to}"),
            (None, Some(to)) => write!(f, "{package} {to} (new)"),
            (Some(from), None) => write!(f, "{package} {from} (removed)"),
            (None, None) => f.write_str(package),
        }
    }
}

/// The differences between two lock files, by name. Packages of the workspace and of folders have no
/// versions that a lock file chooses, and are left out.
pub(crate) fn changes(before: &str, after: &str) -> Result<Vec<PackageChange>, LockError> {
    let (before, after) = (by_slot(&parse(before)?.package), by_slot(&parse(after)?.package));
    let mut changes = Vec::new();
    let mut unpaired: BTreeMap<&str, (Vec<&Package>, Vec<&Package>)> = BTreeMap::new();
    let slots: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for slot in slots {
        let name = slot.name.as_str();
        match (before.get(slot), after.get(slot)) {
            (Some(from), Some(to)) if from.is_same(to) => {}
            (Some(from), None) => unpaired.entry(name).or_default().0.push(from),
            (None, Some(to)) => unpaired.entry(name).or_default().1.push(to),
            (from, to) => changes.push(PackageChange::new(name, from, to)),
        }
    }
    for (name, (gone, new)) in unpaired {
        match (gone.as_slice(), new.as_slice()) {
            // A requirement such as `>=1, <3` allows versions that are not compatible.
            ([from], [to]) => changes.push(PackageChange::new(name, Some(from), Some(to))),
            _ => {
                changes.extend(gone.iter().map(|it| PackageChange::new(name, Some(it), None)));
                changes.extend(new.iter().map(|it| PackageChange::new(name, None, Some(it))));
            }
        }
    }
    changes.sort();
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::lock;
    use super::*;

    fn shown(before: &[&str], after: &[&str]) -> Vec<String> {
        let changes = changes(&lock(before), &lock(after)).unwrap();
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_package_that_differs_is_listed_with_both_versions() {
        let before = ["app 0.1.0: b, a", "b 0.1.0:", "a 1.0.0: old", "old 1.0.0:", "same 1.0.0:"];
        let after = ["app 0.2.0: b, a", "b 0.1.3:", "a 1.1.0: new", "new 3.0.0:", "same 1.0.0:"];
        assert_eq!(
            shown(&before, &after),
            ["a 1.0.0 -> 1.1.0", "b 0.1.0 -> 0.1.3", "new 3.0.0 (new)", "old 1.0.0 (removed)"]
        );
        assert_eq!(shown(&before, &before), [""; 0]);
    }

    #[test]
    fn an_incompatible_version_replaces_the_only_one_that_is_gone() {
        let of = |versions: &[&str]| {
            let packages = versions.iter().map(|version| format!("a {version}:"));
            std::iter::once("app 0.1.0:".to_owned()).chain(packages).collect::<Vec<_>>()
        };
        let shown = |before: &[&str], after: &[&str]| {
            let (before, after) = (of(before), of(after));
            let [before, after] =
                [&before, &after].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            self::shown(&before, &after)
        };
        assert_eq!(shown(&["1.0.0"], &["2.0.0"]), ["a 1.0.0 -> 2.0.0"]);
        assert_eq!(shown(&["1.0.0", "2.0.0"], &["2.0.0"]), ["a 1.0.0 (removed)"]);
        assert_eq!(shown(&["2.0.0"], &["1.0.0", "2.1.0"]), ["a 1.0.0 (new)", "a 2.0.0 -> 2.1.0"]);
    }

    #[test]
    fn a_commit_of_git_is_a_part_of_the_version() {
        let (before, after) = ("a #0123456789ab:", "a #ba9876543210:");
        assert_eq!(
            shown(&["app 0.1.0:", before], &["app 0.1.0:", after]),
            ["a 0.1.0 (0123456789) -> 0.1.0 (ba98765432)"]
        );
    }
}
