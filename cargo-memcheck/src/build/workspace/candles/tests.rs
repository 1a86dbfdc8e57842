//! Which graphs have another candle than the runtime's, and the steps to one candle.

use super::super::example::{Example, REGISTRY, package, workspace};
use super::*;

const GIT: &str = "git+https://host/candle?rev=35d7ae7#35d7ae700";

fn core(version: &'static str, source: &'static str) -> Example {
    package("candle-core").of(version, source)
}

/// A runtime that accepts candle 0.9.2 to 0.11 and has that of the registry.
fn runtime(core: &Example) -> Example {
    let runtime = package("memcheck-runtime").of("0.1.0", REGISTRY);
    let runtime = runtime.declared("candle-core", ">=0.9.2, <0.12", serde_json::json!({}));
    runtime.on(core)
}

fn found(root: &str, packages: &[&Example]) -> Option<OtherCandle> {
    let workspace = workspace(root, packages);
    workspace.other_candles(&workspace.test_packages()).pop()
}

#[test]
fn one_candle_is_not_reported() {
    let core = core("0.11.1", REGISTRY);
    let runtime = runtime(&core);
    let app = package("app").on(&core).on(&runtime);
    assert_eq!(found("/ws", &[&app, &core, &runtime]), None);
    let without = package("app").on(&runtime);
    assert_eq!(found("/ws", &[&without, &core, &runtime]), None);
}

#[test]
fn two_versions_of_the_registry_are_unified_from_above() {
    let (newer, older) = (core("0.11.1", REGISTRY), core("0.9.2", REGISTRY));
    let nn = |version, core: &Example| package("candle-nn").of(version, REGISTRY).on(core);
    let (newer_nn, older_nn) = (nn("0.11.1", &newer), nn("0.9.2", &older));
    let runtime = runtime(&newer).on(&newer_nn);
    let app = package("app").on(&older).on(&older_nn).on(&runtime);
    let other = found("/ws", &[&app, &newer, &older, &newer_nn, &older_nn, &runtime]).unwrap();
    assert!(other.is_only);
    assert_eq!(
        other.message(),
        "app and memcheck-runtime use different copies of candle-core, whose types differ: app has \
         0.9.2 of the registry, and memcheck-runtime has 0.11.1 of the registry"
    );
    assert_eq!(
        other.hint(),
        "use one version for both, in this order:\n\
         cargo update -p candle-nn@0.11.1 --precise 0.9.2\n\
         cargo update -p candle-core@0.11.1 --precise 0.9.2"
    );
}

#[test]
fn a_candle_that_the_program_does_not_use_alone_is_a_note() {
    let (newer, older) = (core("0.11.1", REGISTRY), core("0.8.4", REGISTRY));
    let runtime = runtime(&newer);
    let tool = package("tool").of("1.0.0", REGISTRY).on(&older);
    let app = package("app").on(&newer).on(&tool).on(&runtime);
    let other = found("/ws", &[&app, &newer, &older, &tool, &runtime]).unwrap();
    assert!(!other.is_only);
    assert!(other.message().contains("0.11.1 of the registry, beside 0.8.4"), "{other:?}");
    // The package itself does not name candle.
    let app = package("app").on(&tool).on(&runtime);
    assert!(!found("/ws", &[&app, &newer, &older, &tool, &runtime]).unwrap().is_only);
    // Its library in the workspace does.
    let library = package("library").on(&older);
    let app = package("app").on(&library).on(&runtime);
    assert!(found("/ws", &[&app, &library, &newer, &older, &runtime]).unwrap().is_only);
}

#[test]
fn a_version_that_the_runtime_does_not_accept_has_no_steps() {
    let (newer, older) = (core("0.11.1", REGISTRY), core("0.8.4", GIT));
    let runtime = runtime(&newer);
    let app = package("app").on(&older).on(&runtime);
    let hint = found("/ws", &[&app, &newer, &older, &runtime]).unwrap().hint();
    assert!(
        hint.contains("needs candle-core >=0.9.2, <0.12, so that it cannot use 0.8.4"),
        "{hint}"
    );
    assert!(!hint.contains("cargo update"), "{hint}");
}

#[test]
fn a_version_that_the_program_can_raise_has_steps() {
    let (newer, older) = (core("0.11.1", REGISTRY), core("0.9.1", REGISTRY));
    let nn = package("candle-nn").of("0.9.1", REGISTRY).on(&older);
    let runtime = runtime(&newer);
    let app = package("app").on(&older).on(&nn).on(&runtime);
    let hint = found("/ws", &[&app, &newer, &older, &nn, &runtime]).unwrap().hint();
    assert_eq!(
        hint,
        "memcheck-runtime needs candle-core >=0.9.2, <0.12; the requirements of the program accept \
         0.9.2, so use it for both, in this order:\n\
         cargo update -p candle-nn@0.9.1 --precise 0.9.2\n\
         cargo update -p candle-core@0.11.1 --precise 0.9.2"
    );
    // One of its dependencies accepts no other version.
    let tool = package("tool").of("1.0.0", REGISTRY).on(&older);
    let tool = tool.declared("candle-core", "=0.9.1", serde_json::json!({}));
    let app = package("app").on(&older).on(&nn).on(&tool).on(&runtime);
    let hint = found("/ws", &[&app, &newer, &older, &nn, &tool, &runtime]).unwrap().hint();
    assert!(!hint.contains("cargo update"), "{hint}");
}

#[test]
fn a_candle_in_a_folder_becomes_a_patch_and_then_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    for name in ["candle-core", "candle-nn", "app"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("Cargo.toml"), "").unwrap();
    }
    let published = core("0.11.1", REGISTRY);
    let runtime = runtime(&published);
    let member = package("candle-core").version("0.11.0");
    let nn = package("candle-nn").on(&member);
    let app = package("app").on(&member).on(&nn).on(&runtime);
    let hint = || {
        let other = found(root, &[&app, &member, &nn, &published, &runtime]).unwrap();
        assert!(other.is_only);
        other.hint()
    };
    let update = "cargo update -p candle-core@0.11.1";
    assert_eq!(
        hint(),
        format!(
            "add to {root}/Cargo.toml:\n[patch.crates-io]\n\
             candle-core = {{ path = \"candle-core\" }}\ncandle-nn = {{ path = \"candle-nn\" }}\n\
             then make Cargo.lock follow it:\n{update}"
        )
    );
    let patch = "[patch.crates-io]\ncandle-core = { path = \"candle-core\" }\n";
    std::fs::write(folder.path().join("Cargo.toml"), patch).unwrap();
    assert!(
        hint().ends_with(&format!("keeps the version of the registry:\n{update}")),
        "{}",
        hint()
    );
}
