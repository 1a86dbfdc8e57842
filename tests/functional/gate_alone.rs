//! A build of the command without default features is the gate alone: it has neither the code nor
//! the dependencies of the other parts, and names the feature of a part that it lacks.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::fixture::{cargo, target, workspace};

/// The features of the command that are parts of it.
const PARTS: [&str; 4] = ["archives", "comparison", "estimates", "exports"];

fn manifest() -> toml::Table {
    let text =
        fs::read_to_string(workspace().join("cargo-memcheck/Cargo.toml")).expect("the manifest");
    text.parse().expect("TOML")
}

/// The packages that cargo compiles for the command.
fn tree(arguments: &[&str]) -> BTreeSet<String> {
    let output = cargo()
        .args(["tree", "--offline", "--locked", "--package", "cargo-memcheck"])
        .args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .args(arguments)
        .current_dir(workspace())
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_gate_alone_depends_on_nothing_of_the_other_parts() {
    let manifest = manifest();
    let features = manifest["features"].as_table().expect("features");
    let of = |feature: &str| -> Vec<String> {
        let enabled = features[feature].as_array().expect("a list");
        enabled.iter().map(|it| it.as_str().expect("a text").to_owned()).collect()
    };
    let by_default = of("default");
    assert!(PARTS.iter().all(|part| by_default.iter().any(|it| it == part)), "{by_default:?}");
    let (all, gate) = (tree(&[]), tree(&["--no-default-features"]));
    assert!(gate.is_subset(&all));
    // Other dependencies need these as well.
    let shared = ["flate2", "crc32fast", "fallible-iterator", "getrandom", "memmap2", "num-traits"];
    let dependencies = features.keys().flat_map(|feature| of(feature));
    let mut count = 0;
    for name in dependencies.filter_map(|it| it.strip_prefix("dep:").map(str::to_owned)) {
        assert!(all.contains(&name), "{name} is in no build");
        assert_eq!(gate.contains(&name), shared.contains(&name.as_str()), "{name}");
        count += 1;
    }
    assert!(count >= 15, "{count}");
}

/// The build shares the dependencies of this workspace, so that only the command is compiled.
#[test]
#[ignore = "slow: just all"]
fn the_gate_alone_builds_without_a_warning_and_names_the_feature_that_it_lacks() {
    let folder = target().join("gate-alone");
    let built = cargo()
        .args(["build", "--offline", "--locked", "--package", "cargo-memcheck"])
        .args(["--no-default-features", "--features", "workspace", "--target-dir"])
        .arg(&folder)
        .env("CARGO_BUILD_BUILD_DIR", target())
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    let log = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && !log.contains("warning"), "{log}");
    let run = |line: &str| {
        let output = Command::new(folder.join("debug/cargo-memcheck"))
            .arg("memcheck")
            .args(line.split_whitespace())
            .current_dir(workspace())
            .output()
            .expect("the gate runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, help) = run("--help");
    assert_eq!(code, Some(0), "{help}");
    let has = |name: &str| help.lines().any(|line| line.split_whitespace().next() == Some(name));
    assert!(has("run") && has("report") && has("accept"), "{help}");
    for (line, part, feature) in [
        ("archive", "the subcommand `archive`", "archives"),
        ("run --archive-file Cargo.toml", "the part that reads archives", "archives"),
        ("bisect", "the subcommand `bisect`", "comparison"),
        ("compare main", "the subcommand `compare`", "comparison"),
        ("history a", "the subcommand `history`", "comparison"),
        ("run --history a.jsonl", "the history", "comparison"),
        ("estimate --config a", "the subcommand `estimate`", "estimates"),
        ("fit a", "the subcommand `fit`", "estimates"),
        ("plan a", "the subcommand `plan`", "estimates"),
        ("run --report html=a", "the report `html`", "exports"),
        ("report --report csv=a", "the report `csv`", "exports"),
    ] {
        let (code, text) = run(line);
        assert_eq!(code, Some(2), "{line}: {text}");
        let expected = format!("{part} was left out of this build");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&expected), "{line}: {text}");
        assert!(text.contains(&format!("--features {feature}")), "{line}: {text}");
        if let Some(name) = part.strip_prefix("the subcommand `") {
            assert!(!has(name.trim_end_matches('`')), "{name} is in the help");
        }
    }
}
