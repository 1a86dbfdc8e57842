//! Lock files between two others: some of the packages that differ have the version of the older
//! file, and the others that of the newer one. Cargo decides whether such a file resolves.

mod changes;
mod locked;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub(crate) use changes::{PackageChange, changes};
pub(crate) use locked::{LockedPackages, LockedVersion, NoLocked, without};

#[derive(Debug, Deserialize, Serialize)]
struct LockFile {
    version: u32,
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
struct Package {
    name: String,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<String>,
}

/// The packages that cargo can exchange for each other without a change of a manifest: the same
/// name, the same source and compatible versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PackageSlot {
    name: String,
    compatible: String,
    source: String,
}

/// A dependency whose version differs between the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Update {
    /// The name of the package.
    pub(crate) package: String,
    /// The version of the older file, for a git dependency with the commit.
    pub(crate) from: String,
    /// That of the newer file.
    pub(crate) to: String,
    #[serde(skip)]
    slot: PackageSlot,
}

#[derive(Debug, thiserror::Error)]
#[error("it is not a lock file of cargo: {0}")]
pub(crate) struct LockError(String);

/// Two lock files and their differences.
#[derive(Debug)]
pub(crate) struct LockRange {
    version: u32,
    older: BTreeMap<PackageSlot, Package>,
    newer: BTreeMap<PackageSlot, Package>,
    /// Packages of the workspace, as the newer file has them.
    members: Vec<Package>,
    /// Those without dependencies among them come first, so that the first ones can be applied
    /// without the others.
    pub(crate) updates: Vec<Update>,
}

impl Package {
    fn slot(&self) -> Option<PackageSlot> {
        let source = self.source.as_deref()?;
        let (source, _) = source.split_once('#').unwrap_or((source, ""));
        let (name, source) = (self.name.clone(), source.to_owned());
        Some(PackageSlot { name, compatible: compatible(&self.version), source })
    }

    /// `1.2.3`, or `1.2.3 (0123456789)` for a commit.
    fn described(&self) -> String {
        let commit = self.source.as_deref().and_then(|source| source.split_once('#'));
        match commit {
            Some((_, commit)) => {
                format!("{} ({})", self.version, commit.get(..10).unwrap_or(commit))
            }
            None => self.version.clone(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.version, &self.source) == (&other.name, &other.version, &other.source)
    }
}

/// The part of a version that a caret requirement keeps: `1` of 1.2.3, `0.1` of 0.1.2.
fn compatible(version: &str) -> String {
    let core = version.split(['-', '+']).next().unwrap_or(version);
    let parts: Vec<&str> = core.split('.').collect();
    let first = parts.iter().position(|part| *part != "0").unwrap_or(parts.len());
    parts[..(first + 1).min(parts.len())].join(".")
}

fn parse(text: &str) -> Result<LockFile, LockError> {
    toml::from_str(text).map_err(|error| LockError(error.message().to_owned()))
}

fn by_slot(packages: &[Package]) -> BTreeMap<PackageSlot, Package> {
    packages.iter().filter_map(|package| Some((package.slot()?, package.clone()))).collect()
}

/// The package that an entry of `dependencies` means: `NAME`, with version and source if the name
/// alone is ambiguous.
fn meant<'a>(dependency: &str, packages: &'a [Package]) -> Option<&'a Package> {
    let mut words = dependency.splitn(3, ' ');
    let (name, version) = (words.next()?, words.next());
    let source = words.next().map(|source| source.trim_matches(['(', ')']));
    let without_commit = |source: &str| source.split('#').next().unwrap_or(source).to_owned();
    packages.iter().find(|package| {
        package.name == name
            && version.is_none_or(|version| package.version == version)
            && source.is_none_or(|source| {
                package.source.as_deref().map(without_commit) == Some(without_commit(source))
            })
    })
}

impl LockRange {
    pub(crate) fn between(older: &str, newer: &str) -> Result<Self, LockError> {
        let (then, now) = (parse(older)?, parse(newer)?);
        // The entries of both files get complete names, because a name can be unique in one only.
        let [then_packages, now_packages] = [&then, &now].map(|file| {
            let complete = |package: &Package| {
                let dependencies = package.dependencies.iter();
                let dependencies = dependencies.filter_map(|it| meant(it, &file.package));
                let dependencies = dependencies.map(complete_name).collect();
                Package { dependencies, ..package.clone() }
            };
            file.package.iter().map(complete).collect::<Vec<_>>()
        });
        let (older, newer) = (by_slot(&then_packages), by_slot(&now_packages));
        let members = now_packages.iter().filter(|package| package.source.is_none()).cloned();
        let members = members.collect();
        let mut updates = Vec::new();
        let mut seen = BTreeSet::new();
        for slot in newer.keys() {
            visit(slot, (&older, &newer), &now_packages, &mut seen, &mut updates);
        }
        Ok(Self { version: now.version, older, newer, members, updates })
    }

    /// The lock file in which the updates with these numbers are applied. It also has the packages
    /// that only one of the files has; cargo removes those that it does not need.
    pub(crate) fn with(&self, applied: &BTreeSet<usize>) -> String {
        let applied: BTreeSet<&PackageSlot> =
            applied.iter().map(|number| &self.updates[*number].slot).collect();
        let mut packages: BTreeMap<&PackageSlot, &Package> = self.newer.iter().collect();
        for (slot, package) in &self.older {
            if !applied.contains(slot) {
                packages.insert(slot, package);
            }
        }
        let chosen: Vec<Package> =
            packages.values().map(|it| (*it).clone()).chain(self.members.clone()).collect();
        let all = self.older.values().chain(self.newer.values()).chain(&self.members);
        let slots: BTreeMap<String, Option<PackageSlot>> =
            all.map(|package| (complete_name(package), package.slot())).collect();
        let other = |name: &String| match slots.get(name)? {
            Some(slot) => packages.get(slot).map(|package| complete_name(package)),
            None => Some(name.clone()),
        };
        let renamed = chosen.iter().map(|package| {
            let dependencies = package.dependencies.iter().filter_map(other).collect();
            Package { dependencies, ..package.clone() }
        });
        let file = LockFile { version: self.version, package: renamed.collect() };
        toml::to_string(&file).expect("a lock file is a table of text")
    }

    /// The numbers of the updates that a resolved lock file has. `None` if cargo has chosen a
    /// version that neither of the two files has.
    pub(crate) fn applied(&self, resolved: &str) -> Result<Option<BTreeSet<usize>>, LockError> {
        let resolved = parse(resolved)?.package;
        let is_known = |package: &&Package| {
            let known = self.older.values().chain(self.newer.values());
            package.source.is_none() || known.into_iter().any(|other| other.is_same(package))
        };
        if !resolved.iter().all(|package| is_known(&package)) {
            return Ok(None);
        }
        let has = |slot: &PackageSlot| {
            let found = resolved.iter().find(|package| package.slot().as_ref() == Some(slot));
            // A package that is not needed does not matter.
            found.is_none_or(|package| package.is_same(&self.newer[slot]))
        };
        let numbers = (0..self.updates.len()).filter(|number| has(&self.updates[*number].slot));
        Ok(Some(numbers.collect()))
    }
}

fn complete_name(package: &Package) -> String {
    match &package.source {
        Some(source) => format!("{} {} ({source})", package.name, package.version),
        None => format!("{} {}", package.name, package.version),
    }
}

/// Adds the update of a slot after those of its dependencies.
fn visit(
    slot: &PackageSlot,
    (older, newer): (&BTreeMap<PackageSlot, Package>, &BTreeMap<PackageSlot, Package>),
    packages: &[Package],
    seen: &mut BTreeSet<PackageSlot>,
    updates: &mut Vec<Update>,
) {
    let Some(package) = newer.get(slot) else { return };
    if !seen.insert(slot.clone()) {
        return;
    }
    for dependency in &package.dependencies {
        if let Some(below) = meant(dependency, packages).and_then(Package::slot) {
            visit(&below, (older, newer), packages, seen, updates);
        }
    }
    if let Some(before) = older.get(slot).filter(|before| !before.is_same(package)) {
        let (from, to) = (before.described(), package.described());
        updates.push(Update { package: slot.name.clone(), from, to, slot: slot.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "registry+https://example.org/index";

    /// Packages as `name version: dependencies`. The first one is that of the workspace.
    pub(super) fn lock(packages: &[&str]) -> String {
        let mut text = "version = 4\n".to_owned();
        for (number, package) in packages.iter().enumerate() {
            let (id, dependencies) = package.split_once(':').unwrap();
            let (name, version) = id.split_once(' ').unwrap();
            let source = match number {
                0 => String::new(),
                _ if version.starts_with('#') => {
                    "source = \"git+https://example.org/a".to_owned() + version + "\"\n"
                }
                _ => format!("source = \"{REGISTRY}\"\nchecksum = \"{name}{version}\"\n"),
            };
            let version = if version.starts_with('#') { "0.1.0" } else { version };
            let dependencies: Vec<String> = dependencies
                .split(',')
                .map(str::trim)
                .filter(|it| !it.is_empty())
                .map(|it| format!("{it:?}"))
                .collect();
            text += &format!(
                "\n[[package]]\nname = {name:?}\nversion = {version:?}\n{source}dependencies = [{}]\n",
                dependencies.join(", ")
            );
        }
        text
    }

    fn versions(text: &str) -> Vec<String> {
        let packages = parse(text).unwrap().package;
        packages.iter().map(|it| format!("{} {}", it.name, it.described())).collect()
    }

    #[test]
    fn updates_are_listed_after_those_that_they_need() {
        let range = LockRange::between(
            &lock(&["app 0.1.0: z, a", "a 1.0.0: z", "same 1.0.0:", "z 1.0.0:"]),
            &lock(&["app 0.1.0: z, a", "a 1.1.0: z", "same 1.0.0:", "z 1.2.0: new", "new 0.1.0:"]),
        )
        .unwrap();
        let shown: Vec<String> = range
            .updates
            .iter()
            .map(|it| format!("{} {} {}", it.package, it.from, it.to))
            .collect();
        assert_eq!(shown, ["z 1.0.0 1.2.0", "a 1.0.0 1.1.0"]);
    }

    #[test]
    fn a_file_in_between_has_the_versions_and_the_names_of_both() {
        let older = lock(&["app 0.1.0: a, b", "a 1.0.0: b", "b 1.0.0:"]);
        let newer = lock(&["app 0.1.0: a, b 1.5.0", "a 1.1.0: b 2.0.0", "b 1.5.0:", "b 2.0.0:"]);
        let range = LockRange::between(&older, &newer).unwrap();
        let names: Vec<&str> = range.updates.iter().map(|it| it.package.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let none = range.with(&BTreeSet::new());
        assert_eq!(versions(&none), ["a 1.0.0", "b 1.0.0", "b 2.0.0", "app 0.1.0"]);
        // The package of the workspace needs the older version now.
        assert!(none.contains(&format!("b 1.0.0 ({REGISTRY})")), "{none}");
        assert!(none.contains("checksum = \"a1.0.0\""), "{none}");
        assert_eq!(versions(&range.with(&[0].into()))[..2], ["a 1.1.0", "b 1.0.0"]);
        let all = range.with(&[0, 1].into());
        assert_eq!(versions(&all), versions(&newer_first(&newer)));
        assert_eq!(range.applied(&all).unwrap(), Some([0, 1].into()));
        assert_eq!(range.applied(&older).unwrap(), Some([].into()));
    }

    fn newer_first(text: &str) -> String {
        let mut file = parse(text).unwrap();
        file.package.rotate_left(1);
        toml::to_string(&file).unwrap()
    }

    #[test]
    fn a_version_of_neither_file_is_noticed() {
        let (older, newer) =
            (lock(&["app 0.1.0: a", "a 1.0.0:"]), lock(&["app 0.1.0: a", "a 1.2.0:"]));
        let range = LockRange::between(&older, &newer).unwrap();
        assert_eq!(range.applied(&lock(&["app 0.1.0: a", "a 1.1.0:"])).unwrap(), None);
        assert_eq!(range.applied(&lock(&["app 0.1.0:"])).unwrap(), Some([0].into()));
    }

    #[test]
    fn commits_of_a_git_dependency_are_versions() {
        let range = LockRange::between(
            &lock(&["app 0.1.0: a", "a #0123456789ab:"]),
            &lock(&["app 0.1.0: a", "a #ba9876543210:"]),
        )
        .unwrap();
        assert_eq!(range.updates[0].from, "0.1.0 (0123456789)");
        assert_eq!(range.updates[0].to, "0.1.0 (ba98765432)");
        assert!(range.with(&BTreeSet::new()).contains("#0123456789ab"));
    }

    #[test]
    fn caret_requirements_decide_which_versions_are_compatible() {
        let cases = [("1.2.3", "1"), ("0.1.2", "0.1"), ("0.0.3", "0.0.3"), ("2.0.0-rc.1+x", "2")];
        for (version, expected) in cases {
            assert_eq!(compatible(version), expected, "{version}");
        }
        assert!(LockRange::between("package = 1", "").is_err());
    }
}
