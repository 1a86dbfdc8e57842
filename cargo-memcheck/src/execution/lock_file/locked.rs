//! The packages of a lock file from which an update chooses.

use std::collections::BTreeSet;

use toml_edit::{DocumentMut, Item, Table};

use super::{LockError, Package, compatible, parse};

/// The reasons why no single package of a lock file is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoLocked {
    Unknown,
    /// A package of the workspace, or of a folder.
    WithoutVersions,
    /// Several versions, and none is compatible with the wanted one.
    Several(Vec<String>),
}

/// A name with a version, exactly as the lock file has them.
pub(crate) type LockedVersion = (String, String);

#[derive(Debug)]
pub(crate) struct LockedPackages(Vec<Package>);

impl LockedPackages {
    pub(crate) fn read(text: &str) -> Result<Self, LockError> {
        Ok(Self(parse(text)?.package))
    }

    /// The names of all packages that have versions to choose from.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        let external = self.0.iter().filter(|package| package.source.is_some());
        external.map(|package| package.name.as_str()).collect()
    }

    /// All versions of a package.
    pub(crate) fn versions(&self, name: &str) -> Result<Vec<&str>, NoLocked> {
        let of_name: Vec<&Package> = self.0.iter().filter(|it| it.name == name).collect();
        let external = of_name.iter().filter(|package| package.source.is_some());
        let versions: Vec<&str> = external.map(|package| package.version.as_str()).collect();
        match (of_name.is_empty(), versions.is_empty()) {
            (true, _) => Err(NoLocked::Unknown),
            (false, true) => Err(NoLocked::WithoutVersions),
            (false, false) => Ok(versions),
        }
    }

    /// The version that `wanted` replaces: the only one, or the one that it is compatible with.
    pub(crate) fn replaced(&self, name: &str, wanted: &str) -> Result<&str, NoLocked> {
        let versions = self.versions(name)?;
        let is_meant = |version: &&str| compatible(version) == compatible(wanted);
        match versions.as_slice() {
            [only] => Ok(only),
            several => several.iter().copied().find(is_meant).ok_or_else(|| {
                NoLocked::Several(several.iter().map(|&version| version.to_owned()).collect())
            }),
        }
    }

    pub(crate) fn is_of_git(&self, name: &str) -> bool {
        let is_of_git = |source: &str| source.starts_with("git+");
        self.0.iter().any(|it| it.name == name && it.source.as_deref().is_some_and(is_of_git))
    }

    /// True if the package is one of a registry, so that cargo can choose another version of it.
    pub(crate) fn is_of_registry(&self, (name, version): &LockedVersion) -> bool {
        let is_of_registry = |package: &&Package| {
            let source = package.source.as_deref().unwrap_or_default();
            source.starts_with("registry+") || source.starts_with("sparse+")
        };
        let mut of_registry = self.0.iter().filter(is_of_registry);
        of_registry.any(|package| package.name == *name && package.version == *version)
    }
}

/// A lock file without some packages, whose versions cargo therefore chooses again.
pub(crate) fn without(text: &str, freed: &BTreeSet<LockedVersion>) -> Result<String, LockError> {
    let mut file: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        // Parsed before, and only its form is kept here.
        LockError(error.message().to_owned())
    })?;
    let of = |package: &Table, key: &str| {
        package.get(key).and_then(Item::as_str).unwrap_or_default().to_owned()
    };
    if let Some(packages) = file.get_mut("package").and_then(Item::as_array_of_tables_mut) {
        packages.retain(|it| !freed.contains(&(of(it, "name"), of(it, "version"))));
    }
    Ok(file.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::tests::lock;
    use super::*;

    fn locked(packages: &[&str]) -> LockedPackages {
        LockedPackages::read(&lock(packages)).unwrap()
    }

    #[test]
    fn a_wanted_version_replaces_the_compatible_one() {
        let all = locked(&["app 0.1.0: a", "a 1.2.0:", "a 2.0.0:", "b 0.1.0:"]);
        assert_eq!(all.names(), BTreeSet::from(["a", "b"]));
        assert_eq!(all.versions("a"), Ok(vec!["1.2.0", "2.0.0"]));
        assert_eq!((all.replaced("a", "1.0.0"), all.replaced("a", "2.3.0")), {
            (Ok("1.2.0"), Ok("2.0.0"))
        });
        assert_eq!(all.replaced("b", "7.0.0"), Ok("0.1.0"), "it is the only one");
        let several = NoLocked::Several(vec!["1.2.0".to_owned(), "2.0.0".to_owned()]);
        assert_eq!(all.replaced("a", "3.0.0"), Err(several));
        assert_eq!(all.replaced("c", "1.0.0"), Err(NoLocked::Unknown));
        assert_eq!(all.versions("app"), Err(NoLocked::WithoutVersions));
    }

    #[test]
    fn only_packages_of_a_registry_are_freed() {
        let all = locked(&["app 0.1.0: a", "a 1.0.0:", "b #0123456789ab:"]);
        let is_of_registry =
            |name: &str, version: &str| all.is_of_registry(&(name.to_owned(), version.to_owned()));
        assert!(is_of_registry("a", "1.0.0") && !is_of_registry("a", "1.1.0"));
        assert!(!is_of_registry("b", "0.1.0") && !is_of_registry("app", "0.1.0"));
        assert!(all.is_of_git("b") && !all.is_of_git("a"));
    }

    #[test]
    fn a_file_without_a_package_keeps_the_form_of_the_others() {
        let text = lock(&["app 0.1.0: a, b", "a 1.0.0:", "b 1.0.0:", "b 2.0.0:"]);
        let freed = BTreeSet::from([("b".to_owned(), "2.0.0".to_owned())]);
        let expected = lock(&["app 0.1.0: a, b", "a 1.0.0:", "b 1.0.0:"]);
        assert_eq!(without(&text, &freed).unwrap(), expected);
        assert_eq!(without(&text, &BTreeSet::new()).unwrap(), text);
    }
}
