//! `cargo memcheck estimate`: configurations written by hand from published
//! hyper-parameters, against published sizes and closed formulas.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use memcheck_core::exit;
use serde_json::Value;

use crate::fixture::{Run, memcheck, workspace};

fn config(name: &str) -> String {
    let file = format!("memcheck-estimate/configs/{name}.json");
    workspace().join(file).display().to_string()
}

fn estimate(config: &str, arguments: &[&str]) -> Run {
    let mut all = vec!["estimate", "--config", config, "--quiet", "--message-format", "json"];
    all.extend(arguments);
    memcheck(&workspace(), &all)
}

/// The figures of a configuration that can be estimated.
#[track_caller]
fn figures(name: &str, arguments: &[&str]) -> Value {
    let run = estimate(&config(name), arguments).exits(exit::OK);
    run.json().into_iter().find(|line| line["type"] == "estimate").expect("an estimate")
}

/// A decoder with gated feed-forward layers and RMS norms, of vocabulary v,
/// width h, feed-forward f, layers l, queries q and keys k (heads x head width):
/// embeddings (1, tied, or 2) v h + l (2 h q + 2 h k + 3 h f + norms h) + h.
#[expect(clippy::too_many_arguments, reason = "the letters of the formula")]
const fn gated(e: u64, v: u64, h: u64, f: u64, l: u64, q: u64, k: u64, norms: u64) -> u64 {
    e * v * h + l * (2 * h * q + 2 * h * k + 3 * h * f + norms * h) + h
}

/// The same with experts of feed-forward f in place of the one, and a router.
const fn routed(v: u64, h: u64, f: u64, l: u64, q: u64, k: u64, experts: u64) -> u64 {
    gated(2, v, h, 0, l, q, k, 2) + l * experts * (3 * h * f + h)
}

/// A linear layer with its bias.
const fn linear(from: u64, to: u64) -> u64 {
    from * to + to
}

/// A transformer layer of BERT's kind without norms: four projections and two
/// linear layers, with biases.
const fn biased(h: u64, f: u64) -> u64 {
    4 * linear(h, h) + linear(h, f) + linear(f, h)
}

/// v h of embeddings, p and t of positions and types, l layers with two norms.
const fn bert(v: u64, p: u64, t: u64, h: u64, f: u64, l: u64) -> u64 {
    (v + p + t) * h + 2 * h + l * (biased(h, f) + 4 * h)
}

/// Encoder and decoder of l layers each with i = heads x head width, relative
/// positions in b buckets for each head: norms have no bias, nor has anything.
const fn t5(v: u64, d: u64, i: u64, f: u64, l: u64, buckets: u64) -> u64 {
    let encoder = l * (4 * d * i + 2 * d * f + 2 * d) + d + buckets;
    let decoder = l * (8 * d * i + 2 * d * f + 3 * d) + d + buckets;
    v * d + encoder + decoder
}

/// Projections with biases but for that of the keys.
const fn whisper_attention(d: u64) -> u64 {
    4 * d * d + 3 * d
}

/// Two convolutions over m mels, l layers each with 4 d of feed-forward, p
/// learned positions of the decoder; its head is the embedding.
const fn whisper(v: u64, m: u64, d: u64, l: u64, p: u64) -> u64 {
    let ff = linear(d, 4 * d) + linear(4 * d, d);
    let encoder = linear(3 * m, d) + linear(3 * d, d) + l * (whisper_attention(d) + ff + 4 * d);
    let decoder = (v + p) * d + l * (2 * whisper_attention(d) + ff + 6 * d);
    encoder + decoder + 4 * d
}

/// A configuration, the parameters that were published for it, and what candle
/// loads: the closed formula, and in words why it is another number.
struct Published {
    name: &'static str,
    published: u64,
    loaded: u64,
    difference: i64,
}

const fn same(name: &'static str, published: u64, loaded: u64) -> Published {
    Published { name, published, loaded, difference: 0 }
}

#[rustfmt::skip]
const PUBLISHED: &[Published] = &[
    same("llama-2-7b", 6_738_415_616, gated(2, 32_000, 4096, 11_008, 32, 4096, 4096, 2)),
    same("llama-2-70b", 68_976_648_192, gated(2, 32_000, 8192, 28_672, 80, 8192, 1024, 2)),
    same("llama-3-8b", 8_030_261_248, gated(2, 128_256, 4096, 14_336, 32, 4096, 1024, 2)),
    same("llama-3-70b", 70_553_706_496, gated(2, 128_256, 8192, 28_672, 80, 8192, 1024, 2)),
    same("mistral-7b-v0.1", 7_241_732_096, gated(2, 32_000, 4096, 14_336, 32, 4096, 1024, 2)),
    same("mixtral-8x7b-v0.1", 46_702_792_704, routed(32_000, 4096, 14_336, 32, 4096, 1024, 8)),
    // Biases of queries, keys and values.
    same("qwen2-7b", 7_615_616_512,
        gated(2, 152_064, 3584, 18_944, 28, 3584, 512, 2) + 28 * (3584 + 2 * 512)),
    // A norm of queries and one of keys, of the width of a head.
    same("qwen3-8b", 8_190_735_360,
        gated(2, 151_936, 4096, 12_288, 36, 4096, 1024, 2) + 36 * 2 * 128),
    same("qwen3-30b-a3b", 30_532_122_624,
        routed(151_936, 2048, 768, 48, 4096, 512, 128) + 48 * 2 * 128),
    same("gemma-2b", 2_506_172_416, gated(1, 256_000, 2048, 16_384, 18, 2048, 256, 2)),
    same("gemma-7b", 8_537_680_896, gated(1, 256_000, 3072, 24_576, 28, 4096, 4096, 2)),
    same("gemma-2-2b", 2_614_341_888, gated(1, 256_000, 2304, 9216, 26, 2048, 1024, 4)),
    same("phi-3-mini-4k", 3_821_079_552, gated(2, 32_064, 3072, 8192, 32, 3072, 3072, 2)),
    // One norm a layer, since attention and feed-forward read the same.
    same("phi-2", 2_779_683_840,
        51_200 * 2560 + linear(2560, 51_200) + 32 * (biased(2560, 10_240) + 2 * 2560) + 2 * 2560),
    same("t5-small", 60_506_624, t5(32_128, 512, 512, 2048, 6, 32 * 8)),
    // No biases, and no norm before the first attention.
    same("modernbert-base", 149_014_272,
        50_368 * 768 + 22 * (4 * 768 * 768 + 3 * 768 * 1152 + 2 * 768) + 768),
    // Candle's model has no pooler.
    Published { name: "bert-base-uncased", published: 109_482_240,
        loaded: bert(30_522, 512, 2, 768, 3072, 12), difference: -(linear(768, 768) as i64) },
    // The positions of the encoder are computed: they are no parameters of candle's.
    Published { name: "whisper-tiny", published: 37_760_640,
        loaded: whisper(51_865, 80, 384, 4, 448), difference: -(1500 * 384) },
    // Candle reads a head of its own, where the model has its embeddings.
    Published { name: "falcon-7b", published: 6_921_720_704,
        loaded: 2 * 65_024 * 4544 + 32 * (4544 * (4544 + 2 * 64) + 4544 * 4544 + 8 * 4544 * 4544 + 2 * 4544)
            + 2 * 4544,
        difference: 65_024 * 4544 },
];

#[test]
fn published_models_have_their_published_parameters() {
    for Published { name, published, loaded, difference } in PUBLISHED {
        assert_eq!(published.checked_add_signed(*difference), Some(*loaded), "{name}");
        // Candle's Phi and Mixtral mix element types: they run in f32 alone.
        let mixed = ["phi-2", "mixtral-8x7b-v0.1"].contains(name);
        let dtype: &[&str] =
            if mixed { &["--seq", "8", "--dtype", "f32"] } else { &["--seq", "8"] };
        let figures = figures(name, dtype);
        let size = if figures["dtype"] == "f32" { 4 } else { 2 };
        assert_eq!(figures["parameters"], *loaded, "{name}");
        assert_eq!(figures["weights"], loaded * size, "{name}");
    }
}

/// Keys and values of so many tokens: 2 layers kv batch tokens size.
const fn keys_and_values(layers: u64, kv: u64, batch: u64, tokens: u64, size: u64) -> u64 {
    2 * layers * kv * batch * tokens * size
}

#[test]
fn caches_tables_and_logits_have_their_closed_formulas() {
    let llama = figures("llama-3-70b", &["--batch", "2", "--seq", "1024", "--generate", "2"]);
    let inference = &llama["inference"];
    // Llama's cache holds the mask of the prompt too, a byte for each pair.
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

    // An encoder keeps nothing; what it returns is its last hidden states.
    let bert = figures("bert-base-uncased", &["--batch", "4", "--seq", "512"]);
    assert_eq!(bert["inference"]["cache"], 0);
    assert_eq!(bert["inference"]["logits"], 4 * 512 * 768 * 4);
}

#[test]
fn a_card_fits_what_the_estimate_says_to_the_byte() {
    let asked = ["--seq", "2048", "--generate", "16"];
    // As the workload of this repository measures it.
    let peak = 16_434_872_320_u64;
    let (enough, little) = (format!("t4,capacity={peak}B"), format!("t4,capacity={}B", peak - 1));
    let devices = [format!("sim:{enough}"), format!("sim:{little}"), "sim:rtx4090".to_owned()];
    let devices = devices.iter().flat_map(|device| ["--device", device]);
    let arguments: Vec<&str> = asked.into_iter().chain(devices).collect();
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
    let (fit, message) = fits(&little);
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
fn a_training_step_is_measured_where_candle_trains() {
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
    // The head's alone: what lies before the last fused norm is not reached.
    assert_eq!(training["reached"], 1);
    assert_eq!(training["gradients"], 32_000 * 4096 * 2);
    assert_eq!(training["optimizer"], 2 * 2 * 6_738_415_616_u64);
    let said = memcheck(
        &workspace(),
        &["estimate", "--config", &config("llama-2-7b"), "--seq", "64", "--train"],
    );
    assert!(said.stdout.contains("`llama` does not train"), "{}", said.stdout);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path: PathBuf = folder.path().join(name);
        std::fs::write(&path, text).expect("the file is written");
        path.display().to_string()
    };
    let llama = std::fs::read_to_string(config("llama-2-7b")).expect("a configuration");
    let broken = write("broken.json", &llama[..llama.len() / 2]);
    let partial = write("partial.json", &llama.replace("\"hidden_size\": 4096,", ""));
    let unknown = write("unknown.json", &llama.replace("\"llama\"", "\"llamma\""));
    let huge = write("huge.json", &llama.replace(": 4096,", ": 4611686018427387904,"));
    let missing = write("x", "") + ".json";
    let good = config("llama-2-7b");
    let usage = exit::USAGE;
    let cases: [(&str, &[&str], u8, &str); 14] = [
        (&missing, &["--seq", "8"], usage, "No such file"),
        (&broken, &["--seq", "8"], usage, "is not JSON"),
        (&partial, &["--seq", "8"], usage, "missing field `hidden_size`"),
        (&unknown, &["--seq", "8"], usage, "deberta-v2, deepseek_v2, distilbert"),
        (&huge, &["--seq", "8"], usage, "of the configuration is 4,611,686,018,427,387,904"),
        (&good, &["--seq", "8", "--batch", "0"], usage, "'--batch <N>'"),
        (&good, &["--seq", "0"], usage, "'--seq <N>'"),
        (&good, &["--seq", "5000"], usage, "--seq 4096 at most"),
        (&good, &["--seq", "8", "--batch", "999999999999999"], usage, "tokens at once"),
        (&good, &["--seq", "8", "--device", "sim:rtx4091"], usage, "did you mean `rtx4090`?"),
        (&good, &["--seq", "8", "--device", "cpu"], usage, "on simulated devices only"),
        (&config("phi-2"), &["--seq", "8"], exit::NOT_MEASURED, "--dtype f32"),
        (&config("llama-3-70b"), &["--seq", "8192"], exit::NOT_MEASURED, "a smaller --seq"),
        (&good, &["--seq", "4000", "--batch", "4000"], exit::FAILED, "does not fit 1 TiB"),
    ];
    for (config, arguments, code, text) in cases {
        let run = estimate(config, arguments).exits(code).says(text);
        assert_eq!(run.summary()["exit_code"], code, "{text}");
    }
}

#[test]
fn a_batch_that_candle_cannot_run_is_carried_on_from_those_that_it_can() {
    let tokens = |batch: &str| figures("llama-2-7b", &["--seq", "4096", "--batch", batch]);
    let (six, seven, eight) = (tokens("6"), tokens("7"), tokens("8"));
    let note = eight["notes"][0].as_str().expect("a note");
    assert!(note.contains("candle/issues/3604") && note.contains("batch 1, 2, 3, 7"), "{note}");
    assert_eq!(seven["notes"], serde_json::json!([]));
    // On a straight line with two that were run.
    let figure = |of: &Value, name: &str| of.pointer(name).and_then(Value::as_u64).expect("bytes");
    for name in ["/peak", "/weights", "/inference/cache", "/inference/activations"] {
        let [six, seven, eight] = [&six, &seven, &eight].map(|of| figure(of, name));
        assert_eq!(eight, 2 * seven - six, "{name}");
    }
    // Keys and values, and the mask, which all sequences share.
    let cache = keys_and_values(32, 4096, 8, 4096, 2) + 4096 * 4096;
    assert_eq!(figure(&eight, "/inference/cache"), cache);
    let config = config("llama-2-7b");
    for (card, code) in [("sim:h200", exit::OK), ("sim:h100-80g", exit::FAILED)] {
        let run = estimate(&config, &["--seq", "4096", "--batch", "8", "--device", card]);
        assert_eq!(
            run.exits(code).stdout.contains("above its capacity"),
            code != exit::OK,
            "{card}"
        );
    }
}

#[test]
fn the_readme_shows_what_the_command_says() {
    let page = std::fs::read_to_string(workspace().join("README.md")).expect("the README");
    let (_, below) = page.split_once("$ cargo memcheck estimate ").expect("an example");
    let (line, output) = below.split_once('\n').expect("its output");
    let (output, _) = output.split_once("```").expect("the end of it");
    let config = config("llama-2-7b");
    let typed = line.split_whitespace();
    let typed = typed.map(|word| if word == "llama-2-7b.json" { &config } else { word });
    let arguments: Vec<&str> = std::iter::once("estimate").chain(typed).collect();
    let run = memcheck(&workspace(), &arguments).exits(exit::FAILED);
    assert_eq!(run.stdout, output);
}

/// The lines of `cargo tree` for a package, each once.
fn tree(package: &str, arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix", "none", "-p", package])
        .args(arguments)
        .current_dir(workspace())
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).replace(" (*)", "");
    text.lines().map(|line| format!("{} ", line.trim_end())).collect()
}

/// One build of candle for both: with other features cargo would make another.
#[test]
fn the_estimator_is_built_with_the_candle_of_the_tests() {
    let on = ["nn-cuda", "sim", "transformers-cuda"].map(|f| format!("memcheck-runtime/{f}"));
    let features = |package: &str| {
        tree(package, &["-e", "normal,build,dev", "--features", &on.join(","), "-f", "{p} {f}"])
    };
    let (tests, estimator) = (features("memcheck-tests"), features("memcheck-estimate"));
    let candle = tree("candle-transformers", &["-e", "normal,build", "-f", "{p}"]);
    assert!(candle.len() > 50, "{candle:?}");
    for package in candle {
        let of = |all: &BTreeSet<String>| -> Vec<String> {
            all.iter().filter(|line| line.starts_with(&package)).cloned().collect()
        };
        assert_eq!(of(&tests), of(&estimator), "{package}");
    }
}
