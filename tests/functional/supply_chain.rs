//! Licenses of the packages, and the code of others that CI runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::fixture::{cargo, workspace};

fn text(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_package_is_licensed_under_mit_or_apache_2() {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() >= 10, "{}", packages.len());
    for package in packages {
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{}", package["name"]);
    }
    assert!(text("LICENSE-MIT").starts_with("MIT License"));
    assert!(text("LICENSE-APACHE").contains("Version 2.0, January 2004"));
}

/// The actions of a text that are not pinned by the hash of a commit with the version as a comment, and
/// the number of all.
fn unpinned(text: &str) -> (Vec<&str>, usize) {
    let actions = text.lines().filter_map(|line| Some(line.split_once("uses: ")?.1));
    let is_pinned = |action: &&str| {
        let pinned = action.split_once('@').and_then(|(_, pin)| pin.split_once(" # v"));
        pinned.is_some_and(|(hash, version)| {
            let is_hash = hash.len() == 40 && hash.chars().all(|c| c.is_ascii_hexdigit());
            is_hash && version.split('.').count() == 3
        })
    };
    let (pinned, unpinned): (Vec<_>, Vec<_>) = actions.partition(is_pinned);
    let count = pinned.len() + unpinned.len();
    (unpinned, count)
}

/// A tag can be moved to other code, and a hash cannot.
#[test]
fn actions_are_pinned_by_the_hash_of_a_commit() {
    let mut files = vec!["action.yml".into()];
    for folder in [".github/workflows", "docs", "cargo-memcheck/templates"] {
        let entries = fs::read_dir(workspace().join(folder)).unwrap();
        let names =
            entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().display()));
        files.extend(names.filter(|name| name.ends_with(".yml")));
    }
    let mut versions = BTreeMap::new();
    for file in &files {
        let text = text(file);
        let (unpinned, count) = unpinned(&text);
        assert_eq!(unpinned, [""; 0], "{file}");
        assert!(count > 0, "{file} uses no action");
        for (_, action) in text.lines().filter_map(|line| line.split_once("uses: ")) {
            let (name, pin) = action.split_once('@').unwrap();
            let first = versions.entry(name.to_owned()).or_insert_with(|| pin.to_owned());
            assert_eq!(first, pin, "{file} has another version of {name}");
        }
    }
    assert!(versions.contains_key("github/codeql-action/upload-sarif"), "{versions:?}");

    let moved = ["- uses: a/b@v4", "- uses: a/b@main # v4.0.0", "- uses: a/b@0123 # v4.0.0"];
    for line in moved {
        assert_eq!(unpinned(line).0.len(), 1, "{line}");
    }
    assert_eq!(unpinned(&format!("  uses: a/b@{} # v4", "0".repeat(40))).0.len(), 1);
    assert_eq!(unpinned(&format!("  uses: a/b@{} # v4.0.0", "0".repeat(40))), (Vec::new(), 1));
}

/// `cargo binstall` finds the archive that the release workflow uploads.
#[test]
fn the_names_of_released_archives_agree() {
    let manifest: toml::Table = text("cargo-memcheck/Cargo.toml").parse().unwrap();
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let field = |name: &str| binstall[name].as_str().unwrap().to_owned();
    let values =
        [("{ name }", "cargo-memcheck"), ("{ target }", "$target"), ("{ version }", "$version")];
    let fill =
        |text: String| values.iter().fold(text, |text, (field, value)| text.replace(field, value));
    let script = text("scripts/release-archive");
    let line = |start: &str| script.lines().find_map(|line| line.strip_prefix(start)).unwrap();
    let name = line("name=");
    assert!(script.contains("--file \"$out/$name.tar.gz\" \"$name\""), "{script}");
    let url = fill(field("pkg-url"));
    assert_eq!(url, format!("{{ repo }}/releases/download/v$version/{name}.tar.gz"));
    assert_eq!(fill(field("bin-dir")), format!("{name}/{{ bin }}{{ binary-ext }}"));
    assert_eq!(field("pkg-fmt"), "tgz");
    // The tag of the release is that of the address (`releases.rs`).
    assert!(script.contains("\nversion=$(scripts/release-version)\n"), "{script}");
}

#[test]
fn notices_are_written_for_the_licenses_that_are_allowed() {
    let list = |name: &str, key: &str| -> BTreeSet<String> {
        let text = text(name);
        let (_, list) = text.split_once(&format!("\n{key} = [")).expect("the list");
        let (list, _) = list.split_once(']').expect("its end");
        list.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    };
    let allowed = list("deny.toml", "allow");
    assert!(allowed.contains("\"MIT\""), "{allowed:?}");
    assert_eq!(list("about.toml", "accepted"), allowed);
}
