//! The tiny models of `docs/survey.md` with several versions of candle, and the call sites at the
//! peaks that differ. Ignored: `just survey-versions` runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::candle_versions::{lock, package};
use crate::fixture::{memcheck_with, target, workspace};

/// The oldest version that memcheck accepts, and the last one of each later series.
const VERSIONS: [&str; 3] = ["0.9.2", "0.10.2", "0.11.1"];
/// With the value `write`, the figures are written instead of compared.
const WRITE: &str = "SURVEY";

/// The figures that are compared from version to version.
const FIGURES: [&str; 4] = ["weights", "tables", "prompt_peak", "bytes_per_token"];

/// Profiles the program of the package with these arguments.
fn profile(arguments: &[&str]) -> Value {
    let own = target().join("functional/candle-versions").display().to_string();
    let variables = [("CARGO_TARGET_DIR", own.as_str()), ("CARGO", env!("CARGO"))];
    let mut all = vec!["profile", "--example", "survey", "--device", "sim:h200"];
    all.extend(["--message-format", "json", "--"]);
    all.extend(arguments);
    let run = memcheck_with(&package(), &all, &variables);
    assert_eq!(run.code, 0, "{arguments:?}:\n{}\n{}", run.stdout, run.stderr);
    run.json().swap_remove(0)
}

/// The figures of all models of a version that is locked.
fn models(file: &Path) -> Vec<Value> {
    profile(&[&file.display().to_string()]);
    let text = std::fs::read_to_string(file).expect("the figures");
    serde_json::from_str(&text).expect("JSON")
}

/// The names of the models with a figure that differs from version to version.
fn differing(versions: &[Vec<Value>]) -> BTreeSet<String> {
    let mut figures: BTreeMap<(String, &str), BTreeSet<String>> = BTreeMap::new();
    for model in versions.iter().flatten() {
        let name = model["name"].as_str().expect("a name").to_owned();
        for figure in FIGURES {
            let values = figures.entry((name.clone(), figure)).or_default();
            values.insert(model[figure].to_string());
        }
    }
    let differing = figures.into_iter().filter(|(_, values)| values.len() > 1);
    differing.map(|((name, _), _)| name).collect()
}

/// The call sites of the device's memory at the peak of a prompt, the largest first.
fn peak_sites(name: &str) -> Vec<Value> {
    let profile = profile(&["-", name]);
    let spaces = profile["spaces"].as_array().expect("spaces");
    let device = spaces.iter().find(|space| space["space"] == "cuda:0").expect("a device");
    let holders = device["holders"].as_array().expect("call sites");
    holders.iter().map(peak_site).collect()
}

fn peak_site(holder: &Value) -> Value {
    const CRATE: &str = "candle-transformers";
    let frames = holder["stack"].as_array().map_or(&[][..], Vec::as_slice);
    // A frame is `function (folder/file.rs:line)`. The folder in the registry has the version.
    let in_candle = |frame: &Value| {
        let (_, below) = frame.as_str()?.trim_end_matches(')').rsplit_once(CRATE)?;
        let (_, path) = below.split_once('/')?;
        Some(format!("{CRATE}/{path}"))
    };
    let site = frames.iter().find_map(in_candle).unwrap_or_else(|| "the program".to_owned());
    json!({ "site": site, "label": holder["label"], "bytes": holder["bytes"] })
}

/// Measures all versions.
fn survey() -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("models.json");
    let of_version = |version: &&str| {
        lock(&package(), version);
        models(&file)
    };
    let versions: Vec<Vec<Value>> = VERSIONS.iter().map(of_version).collect();
    let differing = differing(&versions);
    let pairs = VERSIONS.into_iter().zip(versions);
    let version = |(version, models): (&str, Vec<Value>)| {
        lock(&package(), version);
        let has = |name: &&String| models.iter().any(|model| model["name"] == name.as_str());
        let peaks: BTreeMap<&String, Vec<Value>> =
            differing.iter().filter(has).map(|name| (name, peak_sites(name))).collect();
        json!({ "candle": version, "models": models, "peaks": peaks })
    };
    pairs.map(version).collect()
}

#[test]
#[ignore = "weekly: just survey-versions"]
fn the_models_have_the_figures_of_each_version_of_candle() {
    let measured = serde_json::to_string_pretty(&survey()).expect("JSON") + "\n";
    let path = workspace().join("docs/survey-versions.json");
    if std::env::var(WRITE).is_ok_and(|value| value == "write") {
        std::fs::write(path, measured).expect("the figures are written");
        return;
    }
    let documented = std::fs::read_to_string(path).expect("the figures");
    assert!(measured == documented, "`SURVEY=write just survey-versions` writes the figures again");
}

#[test]
fn a_model_with_a_figure_that_differs_is_found() {
    let model = |name: &str, peak: u64| json!({ "name": name, "prompt_peak": peak });
    let old = vec![model("a", 1), model("b", 2)];
    let new = vec![model("a", 1), model("b", 3), model("c", 4)];
    assert_eq!(differing(&[old, new]), BTreeSet::from(["b".to_owned()]));
    let stack = [
        "candle_core::tensor::Tensor::cat",
        "candle_transformers::models::b::B::f (candle-transformers-0.11.1/src/models/b.rs:8)",
        "candle_transformers::models::b::B::g (candle-transformers-0.11.1/src/models/b.rs:9)",
    ];
    let site = peak_site(&json!({ "stack": stack, "bytes": 5, "label": "cat [2] f32" }));
    assert_eq!(site["site"], "candle-transformers/src/models/b.rs:8");
    assert_eq!(peak_site(&json!({ "stack": [], "bytes": 5 }))["site"], "the program");
}
