//! Watches the inputs that cargo reads before it builds: its configuration, the toolchain and the
//! manifests.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;

use super::Watched;
use crate::invocation::values::CargoOptions;

/// These refer to further files, which this module does not watch.
const BEYOND: [&str; 4] = ["rustc", "include", "paths", "patch"];
const TARGETS: [&str; 5] = ["src", "src/bin", "tests", "examples", "benches"];
/// Files whose mere existence changes the meaning of a package.
const FILES: [&str; 4] = ["build.rs", "README.md", "README.txt", "README"];

/// `None` if the configuration refers to files that this module does not watch.
pub(crate) fn surroundings(flags: &CargoOptions, cargo: &OsStr) -> Option<Watched> {
    let is_rustc = |name: &str| {
        name.starts_with("RUSTC") || name.starts_with("CARGO_BUILD_RUSTC") || name == "CARGO_RUSTC"
    };
    let mut names = env::vars_os().map(|(name, _)| name);
    if !flags.config.is_empty() || names.any(|name| name.to_str().is_none_or(is_rustc)) {
        return None;
    }
    let mut watched = Watched::default();
    let here = env::current_dir().ok()?;
    let home = env::var_os("HOME").map(PathBuf::from);
    let of_home = |variable: &str, folder: &str| {
        let own = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        own.or_else(|| home.as_ref().map(|home| home.join(folder)))
    };
    let cargo_home = of_home("CARGO_HOME", ".cargo")?;
    let folders = here.ancestors().map(|folder| folder.join(".cargo")).chain([cargo_home]);
    for folder in folders {
        for path in [folder.join("config"), folder.join("config.toml")] {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if BEYOND.iter().any(|word| text.contains(word)) {
                return None;
            }
            watched.add(&path);
        }
    }
    let of_manifest = flags.manifest_path.as_ref().map(std::path::absolute);
    let of_manifest = of_manifest.transpose().ok()?;
    for folder in here.ancestors().chain(of_manifest.iter().flat_map(|path| path.ancestors())) {
        watched.add(&folder.join("Cargo.toml"));
        watched.add(&folder.join("rust-toolchain"));
        watched.add(&folder.join("rust-toolchain.toml"));
    }
    toolchain(&mut watched, cargo, &of_home("RUSTUP_HOME", ".rustup")?);
    Some(watched)
}

/// All toolchains, because a proxy of rustup can choose any of them.
fn toolchain(watched: &mut Watched, cargo: &OsStr, rustup: &Path) {
    for program in [cargo, OsStr::new("rustc")] {
        if Path::new(program).is_absolute() {
            watched.add(Path::new(program));
            continue;
        }
        let path = env::var_os("PATH").unwrap_or_default();
        for folder in env::split_paths(&path) {
            let candidate = folder.join(program);
            watched.add(&candidate);
            if candidate.is_file() {
                break;
            }
        }
    }
    watched.add(&rustup.join("settings.toml"));
    let toolchains = rustup.join("toolchains");
    watched.add(&toolchains);
    for toolchain in fs::read_dir(toolchains).into_iter().flatten().flatten() {
        for file in ["bin/rustc", "bin/cargo", "lib", "lib/rustlib"] {
            watched.add(&toolchain.path().join(file));
        }
    }
}

/// `None` if a `patch` names a package outside `metadata`, or a member's pattern has a wildcard in
/// an inner folder.
pub(crate) fn manifests(metadata: &Metadata, mut watched: Watched) -> Option<Watched> {
    let root = metadata.workspace_root.as_std_path();
    let packages = || metadata.packages.iter().filter(|package| package.source.is_none());
    let known: BTreeSet<&Path> =
        packages().filter_map(|package| package.manifest_path.as_std_path().parent()).collect();
    watched.add(&root.join("Cargo.lock"));
    watched.add(&root.join("Cargo.toml"));
    for package in packages() {
        watched.add(package.manifest_path.as_std_path());
        let folder = package.manifest_path.as_std_path().parent()?;
        FILES.iter().for_each(|file| watched.add(&folder.join(file)));
        TARGETS.iter().for_each(|targets| watched.add_targets(&folder.join(targets)));
        // A package that cargo did not list is an optional dependency that is switched off. Cargo
        // does not build it, but reads its manifest.
        let paths = package.dependencies.iter().filter_map(|it| it.path.as_ref());
        paths.for_each(|path| watched.add(&path.as_std_path().join("Cargo.toml")));
    }
    let text = fs::read_to_string(root.join("Cargo.toml")).ok()?;
    let manifest: toml::Table = text.parse().ok()?;
    let patches = ["patch", "replace"].into_iter().filter_map(|key| manifest.get(key));
    if !patches.flat_map(paths).all(|path| {
        fs::canonicalize(root.join(path)).is_ok_and(|path| known.contains(path.as_path()))
    }) {
        return None;
    }
    let workspace = manifest.get("workspace");
    for list in ["members", "exclude"] {
        let patterns = workspace.and_then(|workspace| workspace.get(list)?.as_array());
        for pattern in patterns.into_iter().flatten().filter_map(toml::Value::as_str) {
            let pattern = pattern.trim_end_matches('/');
            let (folder, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
            match (folder.contains(['*', '?', '[']), last.contains(['*', '?', '['])) {
                (true, _) => return None,
                (false, true) => watched.add_members(&root.join(folder)),
                (false, false) => watched.add(&root.join(pattern).join("Cargo.toml")),
            }
        }
    }
    Some(watched)
}

fn paths(value: &toml::Value) -> Vec<&str> {
    let toml::Value::Table(table) = value else { return Vec::new() };
    let own = table.get("path").and_then(toml::Value::as_str);
    own.into_iter().chain(table.values().flat_map(paths)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_a_patch_is_found() {
        let text = "[patch.crates-io]\na = { path = \"../a\" }\nb = { git = \"u\" }\n\
                    [patch.\"https://example.org/c\".c]\npath = \"c\"\n";
        let manifest: toml::Table = text.parse().unwrap();
        assert_eq!(paths(&manifest["patch"]), ["../a", "c"]);
    }

    #[test]
    fn a_configuration_that_leads_elsewhere_is_not_followed() {
        let flags = CargoOptions { config: vec!["a.toml".to_owned()], ..CargoOptions::default() };
        assert!(surroundings(&flags, OsStr::new("cargo")).is_none());
    }
}
