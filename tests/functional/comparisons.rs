//! Compares values of the simulated device with those of the CPU: the outputs of every
//! architecture, and random operations. `just logits` and `just differential` do the same for
//! longer.

use std::process::{Command, Output};

use crate::fixture::{cargo, memcheck, target, workspace};

/// Returns cargo with the simulated toolkit, in the directories of `cargo memcheck`.
fn simulated(arguments: &[&str]) -> Command {
    let printed = memcheck(&workspace(), &["env", "--message-format", "json"]).exits(0);
    let mut command = cargo();
    command
        .args(arguments)
        .current_dir(workspace())
        .env("CARGO_TARGET_DIR", target().join("memcheck/sim"))
        .env("CARGO_BUILD_BUILD_DIR", target());
    for line in printed.json() {
        let Some(name) = line["name"].as_str() else { continue };
        match line["value"].as_str() {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[track_caller]
fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

#[test]
#[ignore = "slow: just all"]
fn every_architecture_computes_the_outputs_of_the_cpu() {
    let features =
        "memcheck-runtime/sim,memcheck-runtime/nn-cuda,memcheck-runtime/transformers-cuda";
    // Of the profile `dev`, in which the simulated device is optimized.
    let arguments = ["test", "--profile", "dev", "-p", "memcheck-estimate", "--test", "logits"];
    let arguments = [&arguments[..], &["--features", features]].concat();
    // The limit of `just logits`: a launch of mamba2 has more operations than the default permits.
    let mut command = simulated(&arguments);
    let output = command.args(["--", "--nocapture"]).env("MEMCHECK_VALUES", "16 GiB").output();
    let text = text(&output.expect("cargo runs"));
    // The devices round differently. Without a difference, the CPU would have computed both.
    let llama = text.lines().find(|line| line.starts_with("llama")).expect("a line for llama");
    assert!(!llama.contains("0.0e0"), "{text}");
}

#[test]
#[ignore = "slow: just all"]
fn random_operations_compute_the_results_of_the_cpu() {
    let example = ["run", "-p", "memcheck-tests", "--example", "differential"];
    let output = simulated(&example)
        .args(["--features", "differential,simulated", "--", "5000", "300"])
        .env("RUST_BACKTRACE", "0")
        .output();
    let text = text(&output.expect("cargo runs"));
    let equal: u64 = text
        .lines()
        .filter_map(|line| line.split_once(" equal "))
        .filter_map(|(line, _)| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    assert!(equal > 1000, "{text}");
}
