//! The results in `cargo-memcheck/recorded`, with which the unit tests of that crate check verdicts and presenters
//! without a process, are those of real runs. `just outputs` writes them again.

use serde_json::{Value, json};

use crate::fixture::{memcheck, workspace};
use crate::outputs::is_written;

/// The name of a recording, and the arguments of its run.
const RECORDINGS: [(&str, &str); 4] = [
    (
        "cpu",
        "-p memcheck-programs --test programs --device cpu --explain always --max-iterations 16 \
         profile:: terminal::ignored_1",
    ),
    (
        "sim",
        "-p memcheck-programs --test programs --device sim:rtx4090 --explain always hardware::ten",
    ),
    (
        "endings",
        "-p memcheck-tests --test controls --device cpu --run-ignored only --explain never \
         --max-iterations 16 --exact gradients_are_kept one_block_over_the_peak an_error an_abort an_exit a_hang",
    ),
    (
        "bert",
        "-p memcheck-tests --test workloads --device sim --explain always --exact bert::forward",
    ),
];

#[test]
fn recorded_results_are_those_of_real_runs() {
    let all: Vec<String> = RECORDINGS.iter().filter_map(|(name, run)| compare(name, run)).collect();
    assert!(all.is_empty(), "`just outputs` writes these recordings again:\n{}", all.join("\n"));
}

/// The first difference between a recording and its run. `just outputs` writes the recording instead.
fn compare(name: &str, run: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    let (results, config) = (path("results"), path("memcheck.toml"));
    std::fs::write(&config, "").expect("the configuration is written");
    let own = ["run", "--no-ci", "--own-pending", "--results", &results, "--config-file", &config];
    // One test after the other, so that they end in the same order.
    let own = own.into_iter().chain(["--test-threads", "1"]);
    let arguments: Vec<&str> = own.chain(run.split_whitespace()).collect();
    memcheck(&workspace(), &arguments);
    let text = std::fs::read_to_string(path("results/results.jsonl")).expect("results");
    let line = |line: &str| normalized(serde_json::from_str(line).expect("JSON"));
    let new: Vec<Value> = text.lines().map(line).collect();
    let file = workspace().join("cargo-memcheck/recorded").join(name).join("results.jsonl");
    if is_written() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
        let text: String = new.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, text).expect("the recording is written");
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let old = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    difference(&comparable(&Value::Array(old)), &comparable(&Value::Array(new)), name)
}

/// The results without small blocks of the host. The processor decides their sizes: gemm's scratch of a
/// product of matrices depends on its caches.
fn comparable(results: &Value) -> Value {
    const SMALL: &str = "host/small";
    match results {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != SMALL);
            Value::Object(kept.map(|(name, value)| (name.clone(), comparable(value))).collect())
        }
        Value::Array(values) => {
            let kept = values.iter().filter(|value| value["space"] != SMALL);
            Value::Array(kept.map(comparable).collect())
        }
        other => other.clone(),
    }
}

/// The place of the first difference of two values.
fn difference(old: &Value, new: &Value, at: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let keys: Vec<String> = match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.keys().chain(new.keys()).cloned().collect(),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            (0..old.len()).map(|index| index.to_string()).collect()
        }
        _ => return Some(format!("{at}: {old:.200} is now {new:.200}")),
    };
    let of = |value: &Value, key: &str| match value {
        Value::Array(values) => values[key.parse::<usize>().expect("an index")].clone(),
        _ => value[key].clone(),
    };
    keys.iter().find_map(|key| difference(&of(old, key), &of(new, key), &format!("{at}/{key}")))
}

/// A line without the commit, times and paths of this machine, and without figures of the process, which the system
/// decides.
fn normalized(line: Value) -> Value {
    match line {
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                let value = match name.as_str() {
                    "duration" => json!({"secs": 0, "nanos": 0}),
                    "seconds" => json!(0.0),
                    "commit" => Value::Null,
                    _ => normalized(value),
                };
                (name, value)
            };
            let left_out = ["uncommitted", "process", "origin"];
            let is_kept = |(name, _): &(String, Value)| !left_out.contains(&name.as_str());
            Value::Object(fields.into_iter().filter(is_kept).map(field).collect())
        }
        Value::Array(values) => values.into_iter().map(normalized).collect(),
        Value::String(text) => {
            let own = workspace().display().to_string();
            let crates =
                text.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
            Value::String(match crates {
                Some((_, file)) => format!("/registry/src/i/{file}"),
                None => text.replace(&own, "/workspace"),
            })
        }
        other => other,
    }
}
