//! The versions in a lock file. Cargo can end with success without the version that it was asked for.

use std::collections::BTreeSet;

/// The versions of a package in the text of a lock file.
pub(crate) fn versions(lock: &str, package: &str) -> BTreeSet<String> {
    let entries = lock.split("\n[[package]]\n");
    let versions = entries.filter_map(|entry| {
        let version = entry.strip_prefix(&format!("name = \"{package}\"\nversion = \""))?;
        Some(version.split_once('"')?.0.to_owned())
    });
    versions.collect()
}

#[test]
fn a_package_has_its_own_versions_only() {
    let entry = |name: &str, version: &str| {
        format!("\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
    };
    let entries = [("a", "1.0.0"), ("a", "2.0.0"), ("ab", "3.0.0")];
    let lock: String = entries.iter().map(|(name, version)| entry(name, version)).collect();
    let lock = format!("version = 4\n{lock}");
    assert_eq!(versions(&lock, "a"), BTreeSet::from(["1.0.0".to_owned(), "2.0.0".to_owned()]));
    assert_eq!(versions(&lock, "b"), BTreeSet::new());
}
