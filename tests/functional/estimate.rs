//! `cargo memcheck estimate`: configurations written by hand from published hyper-parameters,
//! compared with closed formulas.

mod generated;
mod gguf;
mod published;
mod refused;
mod weights;

use memcheck_core::wire::exit;
use serde_json::Value;

use crate::fixture::{Run, memcheck, workspace};

pub(crate) fn config(name: &str) -> String {
    let file = format!("memcheck-estimate/configs/{name}.json");
    workspace().join(file).display().to_string()
}

pub(crate) fn estimate(config: &str, arguments: &[&str]) -> Run {
    let mut all = vec!["estimate", "--config", config, "--quiet", "--message-format", "json"];
    all.extend(arguments);
    memcheck(&workspace(), &all)
}

/// The figures of a configuration that can be estimated.
#[track_caller]
fn figures(name: &str, arguments: &[&str]) -> Value {
    figures_of(estimate(&config(name), arguments))
}

/// The figures of a run that must succeed.
#[track_caller]
fn figures_of(run: Run) -> Value {
    let lines = run.exits(exit::OK).json();
    lines.into_iter().find(|line| line["type"] == "estimate").expect("an estimate")
}

/// Bytes of the keys and values of some tokens: 2 layers kv batch tokens size.
const fn keys_and_values(layers: u64, kv: u64, batch: u64, tokens: u64, size: u64) -> u64 {
    2 * layers * kv * batch * tokens * size
}

#[test]
fn caches_tables_and_logits_have_their_closed_formulas() {
    let llama = figures("llama-3-70b", &["--batch", "2", "--seq", "1024", "--generate", "2"]);
    let inference = &llama["inference"];
    // Llama's cache also holds the mask of the prompt, a byte for each pair.
    let cache = |tokens| keys_and_values(80, 1024, 2, tokens, 2) + 1024 * 1024;
    assert_eq!(inference["cache"], cache(1024));
    assert_eq!(inference["cache_after"], cache(1026));
    assert_eq!(inference["logits"], 2 * 128_256 * 4);
    // Sines and cosines of half a head's width, for every position.
    assert_eq!(llama["tables"], 2 * 8192 * (128 / 2) * 2);
    let sum = |names: &[&Value]| names.iter().filter_map(|value| value.as_u64()).sum::<u64>();
    let parts =
        [&llama["weights"], &llama["tables"], &inference["cache"], &inference["activations"]];
    assert_eq!(inference["prompt_peak"], sum(&parts));
    assert_eq!(llama["peak"], inference["prompt_peak"]);

    let qwen = figures("qwen2-7b", &["--seq", "256", "--generate", "1"]);
    assert_eq!(qwen["inference"]["cache"], keys_and_values(28, 512, 1, 256, 2));
    assert_eq!(qwen["inference"]["cache_after"], keys_and_values(28, 512, 1, 257, 2));

    // An encoder has no cache. Its output is its last hidden states.
    let bert = figures("bert-base-uncased", &["--batch", "4", "--seq", "512"]);
    assert_eq!(bert["inference"]["cache"], 0);
    assert_eq!(bert["inference"]["logits"], 4 * 512 * 768 * 4);
}

#[test]
fn a_model_fits_a_card_of_its_estimated_peak_to_the_byte() {
    let tokens = ["--seq", "2048", "--generate", "16"];
    // The peak that the workload of this repository measures.
    let peak = 16_434_872_320_u64;
    let (enough, too_little) =
        (format!("t4,capacity={peak}B"), format!("t4,capacity={}B", peak - 1));
    let devices = [format!("sim:{enough}"), format!("sim:{too_little}"), "sim:rtx4090".to_owned()];
    let devices = devices.iter().flat_map(|device| ["--device", device]);
    let arguments: Vec<&str> = tokens.into_iter().chain(devices).collect();
    let run = estimate(&config("llama-2-7b"), &arguments).exits(exit::FAILED);
    let lines = run.json();
    assert_eq!(lines[0]["peak"], peak);
    let fits = |device: &str| {
        let line = lines.iter().find(|line| line["device"] == format!("sim:{device}"));
        let line = line.expect("a line for each device");
        assert_eq!(line["peak"].as_u64(), line["fits"].as_bool().unwrap_or(false).then_some(peak));
        (line["fits"].clone(), line["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(fits(&enough).0, true);
    assert_eq!(fits("rtx4090").0, true);
    let (fit, message) = fits(&too_little);
    assert_eq!(fit, false);
    assert!(message.contains("out of memory while reading the prompt"), "{message}");
    assert_eq!(run.summary()["exit_code"], exit::FAILED);

    let cards = lines[0]["cards"].as_array().expect("cards").clone();
    let card = |id: &str| cards.iter().find(|card| card["card"] == id).expect("a card").clone();
    assert_eq!(card("t4")["fits"], false);
    let rtx4080 = card("rtx4080");
    assert_eq!(rtx4080["headroom"], (16_u64 << 30) - peak);
    estimate(&config("llama-2-7b"), &["--seq", "8", "--device", "sim:rtx4090"]).exits(exit::OK);
}

#[test]
fn a_training_step_is_measured_if_candle_trains_the_model() {
    let step = figures("modernbert-base", &["--seq", "64", "--train"]);
    let (weights, training) = (149_014_272_u64 * 4, &step["training"]);
    // A gradient of each parameter, and AdamW's two moments.
    assert_eq!(training["gradients"], weights);
    assert_eq!(training["optimizer"], 2 * weights);
    assert_eq!(training["reached"], training["variables"]);
    assert!(training["peak"].as_u64() > Some(4 * weights), "{training}");

    let run = estimate(&config("llama-2-7b"), &["--seq", "64", "--train"]);
    let run = run.exits(exit::NOT_MEASURED);
    let training = run.json()[0]["training"].clone();
    // Only the head has a gradient, because the last fused norm has no backward pass.
    assert_eq!(training["reached"], 1);
    assert_eq!(training["gradients"], 32_000 * 4096 * 2);
    assert_eq!(training["optimizer"], 2 * 2 * 6_738_415_616_u64);
    let human = memcheck(
        &workspace(),
        &["estimate", "--config", &config("llama-2-7b"), "--seq", "64", "--train"],
    );
    assert!(human.stdout.contains("`llama` does not train"), "{}", human.stdout);
}

#[test]
#[ignore = "slow: just all"]
fn a_batch_that_candle_cannot_run_is_extrapolated_from_smaller_ones() {
    let tokens = |batch: &str| figures("llama-2-7b", &["--seq", "4096", "--batch", batch]);
    let (six, seven) = (tokens("6"), tokens("7"));
    let batch = ["--seq", "4096", "--batch", "8"];
    let devices = ["--device", "sim:h200", "--device", "sim:h100-80g"];
    let run = estimate(&config("llama-2-7b"), &[&batch[..], &devices].concat());
    let lines = run.exits(exit::FAILED).json();
    let eight = &lines[0];
    for (device, fits) in [("sim:h200", true), ("sim:h100-80g", false)] {
        let line = lines.iter().find(|line| line["device"] == device).expect(device);
        assert_eq!(line["fits"], fits, "{line}");
        assert_eq!(line.to_string().contains("above its capacity"), !fits, "{line}");
    }
    let note = eight["notes"][0].as_str().expect("a note");
    assert!(note.contains("candle/issues/3604") && note.contains("batch 1, 2, 3, 7"), "{note}");
    assert_eq!(seven["notes"], serde_json::json!([]));
    // The estimate must be on a straight line with two batches that were run.
    let figure = |of: &Value, name: &str| of.pointer(name).and_then(Value::as_u64).expect("bytes");
    for name in ["/peak", "/weights", "/inference/cache", "/inference/activations"] {
        let [six, seven, eight] = [&six, &seven, eight].map(|of| figure(of, name));
        assert_eq!(eight, 2 * seven - six, "{name}");
    }
    // Keys and values, and the mask, which all sequences share.
    let cache = keys_and_values(32, 4096, 8, 4096, 2) + 4096 * 4096;
    assert_eq!(figure(eight, "/inference/cache"), cache);
}
