//! The negative controls of `tests/controls` must fail, each with its code and its exact bytes per
//! iteration, on the CPU and on the simulated GPU.

use std::sync::OnceLock;

use candle_core::Device;
use memcheck_tests::choices::{early_exit, experts, loss_scale, sampling, speculative};
use memcheck_tests::leaks::{KeptGradients, LastLogits, RunningLoss, Snapshots};
use memcheck_tests::scenarios::Family;
use memcheck_tests::training::{KEPT_LOSS_BYTES, KEPT_LOSS_SCALAR_BYTES};
use memcheck_tests::{llama, t5};

use crate::fixture::{Run, memcheck, workspace};

/// Each control leaks in every iteration, so that few iterations decide, and steps of training are
/// slow without optimization.
fn run(device: &str) -> Run {
    let target = ["run", "-p", "memcheck-tests", "--test", "controls", "--device", device];
    let options = ["--message-format", "json", "--no-ci", "--run-ignored", "only"];
    let followed = ["--max-iterations", "16"];
    memcheck(&workspace(), &[&target[..], &options, &followed].concat()).exits(100)
}

/// The run of a leg, which all tests of this process share.
pub(crate) fn on(leg: Family) -> &'static Run {
    static RUNS: [OnceLock<Run>; 2] = [const { OnceLock::new() }; 2];
    match leg {
        Family::Cpu => RUNS[0].get_or_init(|| run("cpu")),
        Family::Cuda => RUNS[1].get_or_init(|| run("sim:h200")),
    }
}

/// Asserts the leaks. `small` is 1 if the leg counts blocks below 1 KiB, as a GPU does, and 0
/// otherwise.
fn assert_leaks(run: &Run, small: u64) {
    let llama_config = llama::tiny_config();
    // 2 * layers * batch * kv_heads * head_dim * 4 B: one token.
    let llama = llama::kv_bytes_per_token(&llama_config, 2, candle_core::DType::F32) as u64;
    // Four tokens per request, in the decoder only.
    let t5 = 4 * t5::kv_bytes_per_token(&t5::tiny_config(), 2) as u64;
    for (test, bytes) in [
        ("llama_cache_never_cleared", llama),
        ("t5_cache_never_cleared", t5),
        ("training_keeps_losses", KEPT_LOSS_BYTES as u64 + small * KEPT_LOSS_SCALAR_BYTES as u64),
        (
            "running_loss_keeps_the_graph",
            RunningLoss::LEAK_BYTES as u64 + small * RunningLoss::LEAK_SCALAR_BYTES as u64,
        ),
        ("gradients_are_kept", KeptGradients::LEAK_BYTES as u64),
        ("snapshots_are_kept", Snapshots::LEAK_BYTES as u64),
        ("a_view_keeps_its_storage", LastLogits::LEAK_BYTES as u64),
        // A `DIR` of glibc, and its buffer.
        ("process::folders_are_kept", 48 + 32_768),
    ] {
        assert_leak(run, test, bytes);
    }
}

/// The line that keeps the memory of each iteration, which comes first in every output: none that only
/// calls the iteration.
fn assert_headlines(run: &Run) {
    for (test, file, text) in [
        ("running_loss_keeps_the_graph", "tests/src/leaks.rs", "&self.total + self.layer.loss()?"),
        ("gradients_are_kept", "tests/src/leaks.rs", "backward()"),
        ("snapshots_are_kept", "tests/src/leaks.rs", "copy()"),
    ] {
        let at = run.test(test)["findings"][0]["keeps_at"].clone();
        assert_eq!(at["file"], file, "{test}: {at}");
        let source = std::fs::read_to_string(workspace().join(file)).expect("the source");
        let number = at["line"].as_u64().expect("a line") as usize;
        let line = source.lines().nth(number - 1).expect("the line");
        assert!(line.contains(text), "{test}: {at}: {line}");
    }
}

#[track_caller]
fn assert_leak(run: &Run, test: &str, bytes: u64) {
    let finished = run.test(test);
    assert_eq!(finished["status"], "failed", "{test}");
    let finding = &finished["findings"][0];
    assert_eq!(finding["code"], "leak", "{test}");
    assert_eq!(finding["bytes_per_iteration"], bytes, "{test}");
}

/// The leaks of workloads that decide with computed values: the decisions are those of the CPU.
fn assert_leaks_of_choices(run: &Run) -> candle_core::Result<()> {
    let cpu = &Device::Cpu;
    let sampled = sampling::Generator::new(cpu)?.generate(2)?.len();
    let answer = speculative::Speculation::new(cpu)?.generate()?;
    let layers = early_exit::EarlyExit::new(cpu)?.layers(early_exit::PROMPTS[1].1)?;
    for (test, bytes) in [
        ("logits_of_sampled_tokens_are_kept", sampling::leak_bytes(sampled)),
        ("logits_of_replaced_tokens_are_kept", speculative::leak_bytes(&answer)),
        ("states_of_run_layers_are_kept", early_exit::leak_bytes(layers)),
        ("rows_of_busy_experts_are_kept", experts::leak_bytes()),
        ("gradients_of_skipped_steps_are_kept", loss_scale::leak_bytes()),
    ] {
        assert_leak(run, &format!("choices::{test}"), bytes as u64);
    }
    Ok(())
}

/// The functions that a finding names, with the number of their blocks.
fn lines(run: &Run, test: &str) -> Vec<(String, u64)> {
    let finished = run.test(test);
    let sites = finished["findings"][0]["sites"].as_array().expect("sites are a list").clone();
    let line = |site: &serde_json::Value| {
        let function = site["function"].as_str().unwrap_or_default().to_owned();
        (function, site["count"].as_u64().unwrap_or_default())
    };
    sites.iter().map(line).collect()
}

fn assert_other_codes(run: &Run) {
    for (test, code) in [
        ("whisper_model_kept_for_ever", "retained"),
        ("one_block_over_the_peak", "peak-limit"),
        ("two_allocations", "allocations-limit"),
        ("an_error", "test-failed"),
        ("an_abort", "crashed"),
        ("an_exit", "not-measured"),
        ("a_hang", "timed-out"),
    ] {
        assert_eq!(run.codes(test), [code], "{test}");
    }
    let body = || "controls::two_allocations::body".to_owned();
    assert_eq!(lines(run, "two_allocations"), [(body(), 1), (body(), 1)]);
}

/// Each effect of a refused allocation, with the line of that allocation.
fn assert_faults(run: &Run) {
    for (test, effect, line) in [
        ("an_error_path_leaks", "4,096 B (4.00 KiB) stay in cuda:0 after allocation 2 of 2", 22),
        ("an_error_path_panics", "the body panicked after allocation 2 of 2", 34),
        ("an_error_path_hangs", "the body had not returned ", 39),
        ("an_error_path_aborts", "the test process ended after allocation 2 of 2", 48),
        ("an_error_path_keeps_state", "the iteration after allocation 2 of 2 at", 64),
    ] {
        let name = format!("faults::{test}");
        assert_eq!(run.codes(&name), ["fault-unsafe"], "{test}");
        let finished = run.test(&name);
        let message = finished["findings"][0]["message"].as_str().expect("a message");
        assert!(message.starts_with(effect), "{message}");
        let at = format!("tests/tests/controls/faults/unsafe_steps.rs:{line} ");
        assert!(message.contains(&at), "{message}");
    }
    let left = run.test("faults::an_error_path_leaks")["findings"][0]["sites"].clone();
    let lines = left.as_array().expect("sites").iter().map(|site| site["line"].clone());
    assert_eq!(lines.collect::<Vec<_>>(), [22, 21]);
}

#[test]
fn every_negative_control_has_its_finding_on_the_cpu() {
    let run = on(Family::Cpu);
    assert_leaks(run, 0);
    assert_headlines(run);
    assert_leaks_of_choices(run).expect("the CPU decides");
    assert_other_codes(run);
    assert_eq!(run.summary()["passed"], 0);
}

#[test]
fn every_negative_control_has_its_finding_on_the_simulated_gpu() {
    let run = on(Family::Cuda);
    assert_leaks(run, 1);
    assert_headlines(run);
    assert_leaks_of_choices(run).expect("the CPU decides");
    assert_other_codes(run);
    assert_eq!(run.codes("more_than_any_card"), ["out-of-memory"]);
    let body = "controls::more_than_any_card::body".to_owned();
    assert_eq!(lines(run, "more_than_any_card"), [(body, 1)]);
    assert_faults(run);
    let four = run.test("four_bytes_an_iteration");
    assert_eq!(four["findings"][0]["bytes_per_iteration"], 4);
    assert_eq!(run.summary()["passed"], 0);
}
