//! candle must be compiled only once for each kind of leg, and the command only once. Every build
//! of this repository must therefore compile their crates with the same features and the same
//! profile.
//!
//! Cargo lists the units that it would compile (`--unit-graph`, an unstable option that needs a
//! variable). This test does not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::Value;

use crate::fixture::{Project, cargo, share_build, workspace};
use crate::flash_attention;

/// The crates that take long to compile.
const CANDLE: [&str; 3] = ["candle_core", "candle_nn", "candle_transformers"];

/// The crates of the command that a leg has too, and that take long to compile.
const SYMBOLS: [&str; 5] = ["addr2line", "gimli", "memcheck_conduct", "memcheck_core", "object"];

/// The units that cargo would compile, and an identity of each. Units have the same identity if
/// cargo would reuse one for the other.
struct Units {
    units: Vec<Value>,
    identities: Vec<u64>,
}

impl Units {
    fn list(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = cargo();
        share_build(&mut command);
        command.args(arguments).args(["--unit-graph", "-Z", "unstable-options"]);
        command.env("RUSTC_BOOTSTRAP", "1").current_dir(folder);
        let output = command.output().expect("cargo runs");
        let graph: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!("no graph of {arguments:?}: {}", String::from_utf8_lossy(&output.stderr))
        });
        let units = graph["units"].as_array().expect("units").clone();
        let mut known = vec![None; units.len()];
        for unit in 0..units.len() {
            identity(&units, unit, &mut known);
        }
        Self { units, identities: known.into_iter().flatten().collect() }
    }

    fn candle(&self) -> BTreeMap<String, u64> {
        self.libraries(&CANDLE)
    }

    fn libraries(&self, names: &[&str]) -> BTreeMap<String, u64> {
        let named = self.units.iter().zip(&self.identities).filter_map(|(unit, identity)| {
            let name = unit["target"]["name"].as_str()?;
            let is_library = unit["mode"] == "build" && unit["target"]["kind"][0] == "lib";
            (is_library && names.contains(&name)).then(|| (name.to_owned(), *identity))
        });
        named.collect()
    }

    /// Each package as Cargo.lock writes it.
    fn packages(&self) -> BTreeSet<String> {
        let ids = self.units.iter().filter_map(|unit| unit["pkg_id"].as_str()?.split_once('#'));
        let packages = ids.map(|(source, id)| match id.split_once('@') {
            Some((name, version)) => (name, version),
            None => (source.rsplit('/').next().unwrap_or_default(), id),
        });
        packages
            .map(|(name, version)| format!("name = \"{name}\"\nversion = \"{version}\""))
            .collect()
    }

    /// The features of each package, for the message of a failure.
    fn features(&self) -> BTreeSet<String> {
        let package = |unit: &Value| format!("{} {}", unit["pkg_id"], unit["features"]);
        self.units.iter().filter(|unit| unit["mode"] == "build").map(package).collect()
    }
}

/// A hash of a unit and of all its dependencies.
fn identity(units: &[Value], unit: usize, known: &mut Vec<Option<u64>>) -> u64 {
    if let Some(known) = known[unit] {
        return known;
    }
    let own = &units[unit];
    let mut profile = own["profile"].clone();
    // Cargo reuses units between the profiles `dev` and `test` if everything else is equal.
    profile.as_object_mut().expect("a profile").remove("name");
    let dependencies = own["dependencies"].as_array().expect("dependencies");
    let mut below: Vec<(String, u64)> = dependencies
        .iter()
        .map(|dependency| {
            let number = dependency["index"].as_u64().expect("an index") as usize;
            (dependency["extern_crate_name"].to_string(), identity(units, number, known))
        })
        .collect();
    below.sort();
    let mut hasher = DefaultHasher::new();
    for part in ["pkg_id", "target", "platform", "mode", "features"] {
        own[part].to_string().hash(&mut hasher);
    }
    (profile.to_string(), below).hash(&mut hasher);
    *known[unit].insert(hasher.finish())
}

/// Asserts that the crates of candle that both builds contain are the same.
#[track_caller]
fn assert_shared(one: (&str, &Units), other: (&str, &Units)) {
    assert!(one.1.candle().contains_key("candle_core"), "{} has no candle", one.0);
    assert_same_libraries(&CANDLE, one, other);
}

/// Asserts that those of the libraries `names` that both builds contain are the same.
#[track_caller]
fn assert_same_libraries(
    names: &[&str],
    (name, units): (&str, &Units),
    (other, others): (&str, &Units),
) {
    let (libraries, others_libraries) = (units.libraries(names), others.libraries(names));
    for (krate, identity) in &libraries {
        if others_libraries.get(krate).is_some_and(|other| other != identity) {
            let (features, others) = (units.features(), others.features());
            let only = features.symmetric_difference(&others).filter(|it| !it.contains("memcheck"));
            panic!(
                "{name} and {other} compile {krate} twice, because a crate below it differs. \
                 Packages with other features: {:#?}",
                only.collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn every_build_of_a_leg_compiles_candle_the_same() {
    let root = workspace();
    let project = Project::new("");
    let tests = ["test", "--no-run", "-p", "memcheck-tests"];
    let all = Units::list(&root, &["test", "--no-run", "--workspace"]);
    let cpu = Units::list(&root, &tests);
    let of_project = Units::list(project.path(), &["test", "--no-run"]);
    assert_shared(("`cargo test --workspace`", &all), ("the CPU's leg", &cpu));
    assert_shared(("a project of these tests", &of_project), ("the CPU's leg", &cpu));

    let features =
        "memcheck-runtime/sim,memcheck-runtime/nn-cuda,memcheck-runtime/transformers-cuda";
    let sim = Units::list(&root, &[&tests[..], &["--features", features]].concat());
    let estimator =
        ["build", "-p", "memcheck-estimate", "--example", "memcheck-estimate", "--features"];
    let estimator = Units::list(&root, &[&estimator[..], &[features]].concat());
    assert_shared(("the estimator", &estimator), ("the leg of `sim`", &sim));
    for (name, project) in [
        ("a project of these tests on `sim`", project),
        ("a project with flash-attention", Project::bare(flash_attention::MANIFEST)),
    ] {
        let features = "memcheck-runtime/sim,memcheck-runtime/candle-cuda";
        let arguments = ["test", "--no-run", "--features", features];
        let of_project = Units::list(project.path(), &arguments);
        assert_shared((name, &of_project), ("the leg of `sim`", &sim));
    }
}

#[test]
fn the_command_is_compiled_once_and_shares_its_crates_with_the_tests() {
    let root = workspace();
    let command = Units::list(&root, &["build", "-p", "cargo-memcheck"]);
    let all = Units::list(&root, &["test", "--no-run", "--workspace"]);
    let cpu = Units::list(&root, &["test", "--no-run", "-p", "memcheck-tests"]);
    for units in [&command, &all, &cpu] {
        assert_eq!(units.libraries(&SYMBOLS).len(), SYMBOLS.len());
    }
    for units in [&command, &all] {
        assert_eq!(units.libraries(&["cargo_memcheck"]).len(), 1);
    }
    let command = ("the command", &command);
    assert_same_libraries(&["cargo_memcheck"], command, ("`cargo test --workspace`", &all));
    assert_same_libraries(&SYMBOLS, command, ("the CPU's leg", &cpu));
}

/// Cargo resolves a feature of a dependency on the command line in every build, and takes the
/// newest version of each package that the lock file lacks.
#[test]
fn the_lock_file_of_a_package_has_the_crates_of_every_leg() {
    const CUDA: &str = "memcheck-runtime/cuda,memcheck-runtime/candle-cuda";
    let candle = "candle-nn = \"0.11\"\ncandle-transformers = \"0.11\"\n";
    let runtime = |features: &str| {
        format!("[dev-dependencies]\nmemcheck-runtime = {{ path = \"RUNTIME\"{features} }}\n")
    };
    for (manifest, features) in [
        (runtime(""), "memcheck-runtime/sim,memcheck-runtime/candle-cuda"),
        (runtime(""), CUDA),
        (runtime(", default-features = false"), "memcheck-runtime/sim"),
        (
            candle.to_owned() + &runtime(", features = [\"nn\", \"transformers\"]"),
            "memcheck-runtime/sim,memcheck-runtime/nn-cuda,memcheck-runtime/transformers-cuda",
        ),
    ] {
        let project = Project::plain(&manifest);
        if features == CUDA {
            // That of edition 2018 unites the features of all targets.
            let text = project.read("Cargo.toml");
            let resolver = "[workspace]\nresolver = \"1\"\n";
            project.write("Cargo.toml", &text.replace("[workspace]\n", resolver));
        }
        let on_cpu = Units::list(project.path(), &["test", "--no-run"]);
        assert!(!on_cpu.packages().iter().any(|package| package.contains("cudarc")));
        let locked = project.read("Cargo.lock");
        let with = Units::list(project.path(), &["test", "--no-run", "--features", features]);
        let lacks = with.packages().into_iter().filter(|package| !locked.contains(package));
        assert_eq!(lacks.collect::<Vec<_>>(), [""; 0], "{features}");
        assert_eq!(project.read("Cargo.lock"), locked, "{features}");
    }
}

#[test]
fn adding_memcheck_to_a_package_does_not_recompile_candle() {
    let candle = "candle-nn = \"0.11.1\"\ncandle-transformers = \"0.11.1\"\n";
    let without = Project::plain(candle);
    let with = Project::plain(&format!(
        "{candle}[dev-dependencies]\nmemcheck-runtime = {{ path = \"RUNTIME\" }}\n"
    ));
    let test = ["test", "--no-run"];
    let (without, with) = (Units::list(without.path(), &test), Units::list(with.path(), &test));
    assert_eq!(without.candle().len(), CANDLE.len());
    assert_shared(("the package", &without), ("the package with memcheck", &with));
}
