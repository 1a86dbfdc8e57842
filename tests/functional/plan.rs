//! `plan`: a device map from the measured memory of each layer. A run with this map must have the
//! predicted peaks, to the byte on every GPU.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fixture::{Run, memcheck, memcheck_with, workspace};

const WHERE: [&str; 6] =
    ["-p", "memcheck-tests", "--test", "workloads", "--message-format", "json"];

fn plan(arguments: &[&str]) -> Run {
    memcheck(&workspace(), &[&["plan"], &WHERE[..], arguments].concat())
}

fn run(device: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let fixed = ["run", "--no-ci", "--device", device];
    memcheck_with(&workspace(), &[&fixed, &WHERE[..], arguments].concat(), variables)
}

/// The peaks of the first `gpus` GPUs, 0 if nothing was allocated on one.
fn peaks(run: &Run, test: &str, gpus: usize) -> Vec<Value> {
    let finished = run.test(test);
    let peak = |gpu| &finished["metrics"][format!("cuda:{gpu}")]["peak_allocated"];
    (0..gpus).map(|gpu| peak(gpu).as_u64().unwrap_or(0).into()).collect()
}

#[test]
fn a_sharded_model_on_one_device_has_the_figures_of_candles_own_model() {
    let run = run("sim", &["prefill_and_decode", "on_one_device"], &[]).exits(0);
    let [own, candles] = ["sharded::on_one_device", "llama::prefill_and_decode"]
        .map(|test| run.test(test)["metrics"]["cuda:0"].clone());
    for figure in ["setup", "peak_allocated", "allocations", "allocated_total", "allocated"] {
        assert_eq!(own[figure], candles[figure], "{figure}");
        assert!(own[figure].as_u64().unwrap() > 0, "{figure}");
    }
}

#[test]
fn layers_are_spread_over_two_and_three_gpus() {
    let arguments = ["sharded::evenly_over", "--run-ignored", "all"];
    let run = run("sim:3xh200", &arguments, &[]).exits(0);
    assert_eq!(run.summary()["passed"], 2);
    assert!(peaks(&run, "sharded::evenly_over::gpus_3", 3).iter().all(|peak| *peak != 0));
}

fn by_map(model: &str) -> String {
    format!("sharded::by_map::model_{model}")
}

#[test]
#[ignore = "slow: just all"]
fn row_12_what_runs_by_a_device_map_has_the_predicted_peak_on_every_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("maps/map.json");
    let path = file.to_str().unwrap();
    // Without a map, on one GPU that is large enough: the prediction for the whole model.
    let models = ["tiny", "llama2_7b"];
    let [tiny, llama] = models.map(by_map);
    let alone = run("sim:h200", &[&tiny, &llama], &[]).exits(0);
    let wholes = models.map(|model| (model, peaks(&alone, &by_map(model), 1).remove(0)));
    let wholes = BTreeMap::from(wholes);
    for (model, devices, machine) in [
        ("tiny", "3xt4", "3xt4"),
        ("tiny", "2xt4,capacity=800KiB,t4", "2xt4,capacity=800KiB+t4"),
        ("tiny", "t4,capacity=1MiB,t4,capacity=2MiB", "t4,capacity=1MiB+t4,capacity=2MiB"),
        ("llama2_7b", "2xrtx4070", "2xrtx4070"),
    ] {
        let test = by_map(model);
        let planned = plan(&[&test, "--devices", devices, "--output", path]).exits(0);
        let line = planned.json().into_iter().find(|line| line["type"] == "plan").unwrap();
        let predicted: Vec<Value> = line["devices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|device| device["peak_allocated"].clone())
            .collect();
        let map: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(map, line["device_map"]);
        let ran = run(&format!("sim:{machine}"), &[&test], &[("LLAMA_DEVICE_MAP", path)]);
        assert_eq!(peaks(&ran.exits(0), &test, predicted.len()), predicted, "{devices}");
        assert_eq!(wholes[model], line["whole"]);
    }
    // The whole model needs more than a 12 GB card has, so it runs there with the map only.
    let alone = run("sim:2xrtx4070", &["llama2_7b", "--explain", "never"], &[]).exits(100);
    assert!(alone.stdout.contains("out-of-memory"), "{}", alone.stdout);
}

#[test]
fn a_plan_lists_layers_with_their_weights_and_invalid_input_has_a_hint() {
    let planned = plan(&["model_llama2_7b", "--devices", "2xrtx4090"]).exits(0);
    let line = planned.json().into_iter().find(|line| line["type"] == "plan").unwrap();
    let modules = line["modules"].as_array().unwrap();
    let names: Vec<&str> = modules.iter().map(|module| module["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[34]), (35, "model.embed_tokens", "lm_head"));
    assert_eq!(names[10], "model.layers.9");
    // 4 * 4096² + 3 * 4096 * 11008 + 2 * 4096 parameters of two bytes; keys and values of 2048 + 8
    // tokens.
    let layer = 2 * (4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096);
    for module in &modules[1..33] {
        assert_eq!(module["weights"], layer);
        assert_eq!(module["cache"], 2 * 2056 * 4096 * 2);
        assert_eq!(module["input"], 2048 * 4096 * 2);
    }
    let test = "sharded::by_map::model_tiny";
    // Other errors are unit tests of the command (`commands/estimates/plan.rs` and `commands/one.rs`).
    plan(&["llama::prefill_and_decode", "--devices", "t4"]).exits(2).prints("has no layers");
    let deviceless = ["forms::one_iteration", "--exact", "--devices", "t4"];
    plan(&deviceless).exits(2).prints("takes no device, so");
    // One device holds everything, and a launcher may start the process.
    let alone = plan(&[test, "--devices", "t4", "--runner", "env"]).exits(0).json();
    let line = alone.iter().find(|line| line["type"] == "plan").unwrap();
    let map = line["device_map"].as_object().unwrap();
    // 11 layers, the embeddings, the last norm and the head.
    assert_eq!((map.len(), map.values().all(|device| *device == 0)), (14, true));
    assert_eq!(line["devices"][0]["peak_allocated"], line["whole"]);
    let short = plan(&[test, "--devices", "2xt4,capacity=500KiB"]).exits(100);
    short.prints("have too little memory: cuda:0").prints("are missing").prints("5% of each");
}
