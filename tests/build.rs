//! Applies the changes of `tests/found/changes` to copies of published sources, so that a memory
//! test can compare a module of another crate with the same module after the change.
//!
//! A change that no longer fits stops the build: a new version may have it already.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CHANGES: &str = "tests/found/changes";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={CHANGES}");
    println!("cargo::rerun-if-changed=../Cargo.lock");
    let metadata = metadata();
    let mut changes: Vec<_> =
        fs::read_dir(CHANGES).unwrap().map(|entry| entry.unwrap().path()).collect();
    changes.sort();
    let mut modules = String::new();
    for path in changes {
        let change = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (package, file) = change
            .lines()
            .find_map(|line| line.strip_prefix("--- a/")?.split_once('/'))
            .unwrap_or_else(|| panic!("{} names no file", path.display()));
        let source = fs::read_to_string(folder(&metadata, package).join(file)).unwrap();
        let source = as_module(&apply(&source, &change, &path), package, file);
        writeln!(modules, "pub mod {name} {{\n{source}}}").unwrap();
    }
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("changed.rs"), modules).unwrap();
}

/// Replaces the text of each hunk of a unified diff. Numbers of lines are not read.
fn apply(source: &str, change: &str, path: &Path) -> String {
    let (_, hunks) = change.split_once("\n@@").expect("a hunk");
    hunks.split("\n@@").fold(source.to_owned(), |source, hunk| {
        let side = |sign: char| {
            // An empty line of the source has lost its space.
            let lines = hunk.lines().skip(1);
            let lines = lines.filter(|line| line.is_empty() || line.starts_with([' ', sign]));
            lines.map(|line| format!("{}\n", line.get(1..).unwrap_or(""))).collect::<String>()
        };
        let old = side('-');
        let found = source.matches(&old).count();
        assert!(found == 1, "{}: a hunk fits {found} times:\n{old}", path.display());
        source.replacen(&old, &side('+'), 1)
    })
}

/// Makes a module of this package from a file of another one: without its tests and its inner
/// documentation, and with paths from outside.
fn as_module(source: &str, package: &str, file: &str) -> String {
    let source = source.split("\n#[cfg(test)]\nmod tests").next().unwrap();
    let lines = source.lines().filter(|line| !line.starts_with("//!"));
    let text = lines.map(|line| format!("{line}\n")).collect::<String>();
    let root = package.replace('-', "_");
    let folders = file.strip_prefix("src/").unwrap().split('/').rev().skip(1);
    let parent = folders.fold(String::new(), |path, folder| format!("{folder}::{path}"));
    text.replace("crate::", &format!("{root}::"))
        .replace("super::", &format!("{root}::{parent}"))
        .replace("candle::", "candle_core::")
}

fn metadata() -> String {
    let output = Command::new(env::var("CARGO").unwrap())
        .args(["metadata", "--format-version", "1", "--locked"])
        // Packages of other systems are not on a machine that has only built this workspace.
        .args(["--filter-platform", &env::var("TARGET").unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the folder of a package, from the path of its manifest in the output of `cargo metadata`.
fn folder(metadata: &str, package: &str) -> PathBuf {
    let paths =
        metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let is_package = |path: &&str| {
        let folder = Path::new(path).parent().and_then(Path::file_name).unwrap_or_default();
        folder
            .to_str()
            .and_then(|name| name.rsplit_once('-'))
            .is_some_and(|(name, _)| name == package)
    };
    let manifest = paths.clone().find(is_package);
    let manifest = manifest.unwrap_or_else(|| panic!("{package} is not a dependency"));
    Path::new(manifest).parent().unwrap().to_owned()
}
