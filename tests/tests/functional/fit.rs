//! `fit`: the largest value of a case that a card has room for, exact, and what
//! it says where there is no answer.

use serde_json::Value;

use crate::fixture::{Project, Run};

/// `forward` holds 1 MiB of weights and 3 MiB for each of the batch. Its own
/// limits are broken by any of it.
const TESTS: &str = "
const MIB: (usize, usize) = (256, 1024);

fn activations(rows: usize, dtype: DType, device: &Device) -> candle_core::Result<()> {
    Tensor::zeros((rows, MIB.0, MIB.1), dtype, device).map(drop)
}

#[mem_test(cases(batch = [1, 2]), fits = \"2 MiB\", max_peak = \"2 MiB\")]
fn forward(trial: &mut Trial) -> candle_core::Result<()> {
    let (batch, device): (usize, _) = (trial.case(\"batch\")?, trial.device().clone());
    let weights = Tensor::zeros(MIB, DType::F32, &device)?;
    trial.iterate(|_| activations(3 * batch, DType::F32, &device))?;
    drop(weights);
    Ok(())
}

#[mem_test(cases(dtype = [f32, f16], batch = [1]), baseline = false)]
fn of_two_cases(trial: &mut Trial) {
    let (batch, dtype): (usize, DType) =
        (trial.case(\"batch\").unwrap(), trial.case(\"dtype\").unwrap());
    let device = trial.device().clone();
    trial.iterate(|_| activations(batch, dtype, &device).unwrap());
}

#[mem_test(cases(batch = [1]), baseline = false)]
fn not_above_four(trial: &mut Trial) -> candle_core::Result<()> {
    if trial.case::<usize>(\"batch\")? > 4 {
        candle_core::bail!(\"only four positions\")
    }
    Ok(())
}

#[mem_test(baseline = false)]
fn without_cases(device: &Device) -> candle_core::Result<()> {
    activations(1, DType::F32, device)
}
";

fn fit(project: &Project, arguments: &[&str]) -> Run {
    let mut all = vec!["fit", "--message-format", "json"];
    all.extend(arguments);
    project.memcheck(&all)
}

/// The object of each device.
fn devices(run: &Run) -> Vec<Value> {
    run.json().into_iter().filter(|line| line["type"] == "fit").collect()
}

#[test]
fn row_16_the_largest_batch_is_exact_on_every_card_and_bad_input_is_told() {
    let project = Project::new(TESTS);
    let mib = |mib: u64| mib << 20;
    let cards = ["8MiB", "64MiB", "1GiB"].map(|size| format!("sim:t4,capacity={size}"));
    let [small, middle, large] = cards.each_ref().map(String::as_str);
    let devices_flags = ["--device", small, "--device", middle, "--device", large];

    // (capacity - 1 MiB) / 3 MiB, rounded down: what is tried is the answer and the next.
    let run = fit(
        &project,
        &[&["forward", "--param", "batch", "--margin", "0%"][..], &devices_flags].concat(),
    );
    let run = run.exits(0);
    assert_eq!(run.summary()["exit_code"], 0);
    let found = devices(&run);
    assert_eq!(found.len(), 3);
    for (line, capacity) in found.iter().zip([mib(8), mib(64), mib(1024)]) {
        let largest = (capacity - mib(1)) / mib(3);
        assert_eq!(line["largest"], largest, "{line}");
        assert_eq!(line["peak_allocated"], mib(1) + largest * mib(3), "{line}");
        assert_eq!((&line["capacity"], &line["usable"]), (&capacity.into(), &capacity.into()));
        assert_eq!(line["failed"], largest + 1, "{line}");
        let refused = serde_json::json!({
            "space": "cuda:0", "requested": (largest + 1) * mib(3), "live": mib(1),
        });
        assert_eq!(line["refused"], refused, "{line}");
        let attempts = line["attempts"].as_array().unwrap();
        for value in [largest, largest + 1] {
            let tried = attempts.iter().find(|tried| tried["value"] == value).unwrap();
            assert_eq!(tried["has_room"], value == largest, "{tried}");
        }
        assert_eq!(attempts[0]["beside"], serde_json::json!(["peak-limit"]), "{attempts:?}");
    }
    let tried: Vec<u64> = found[1]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tried| tried["value"].as_u64().unwrap())
        .collect();
    // A straight line through the first two would say 21, and a step is at most eightfold.
    assert_eq!(tried, [1, 2, 16, 21, 22]);
    // Neither its own `fits` nor a baseline had a say.
    assert!(!project.has("tests/snapshots"));

    // A margin, and a capacity for all: 5 % of 64 MiB are left, 19 * 3 + 1 = 58 MiB.
    let run = fit(&project, &["forward", "--param", "batch", "--device", middle]).exits(0);
    assert_eq!(devices(&run)[0]["largest"], 19);
    let run = fit(
        &project,
        &["forward", "--param", "batch", "--device", large, "--fits", "64 MiB", "--margin", "0%"],
    );
    assert_eq!(devices(&run.exits(0))[0]["largest"], 21);

    // Panics on the refusal; a value of the other case is chosen: 64 MiB / 1 MiB, / 0.5 MiB.
    for (dtype, largest) in [("dtype=f32", 64), ("dtype=f16", 128)] {
        let arguments =
            ["of_two", "--param", "batch", "--case", dtype, "--device", middle, "--margin", "0%"];
        assert_eq!(devices(&fit(&project, &arguments).exits(0))[0]["largest"], largest, "{dtype}");
    }
    let ambiguous = ["of_two", "--param", "batch", "--device", middle];
    fit(&project, &ambiguous).exits(2).says("dtype=f16").says("--case NAME=VALUE");

    // The ends of the range: there is room for the largest, or not for the smallest.
    let run = fit(&project, &["forward", "--param", "batch", "--to", "5", "--device", middle]);
    let run = run.exits(0).says("the largest that --to allows");
    assert_eq!(
        (&devices(&run)[0]["largest"], &devices(&run)[0]["failed"]),
        (&5.into(), &Value::Null)
    );
    let run = fit(&project, &["forward", "--param", "batch", "--from", "3", "--device", small]);
    assert_eq!(devices(&run.exits(100))[0]["largest"], Value::Null);

    // The same for people.
    let human = project.memcheck(&["fit", "forward", "--param", "batch", "--device", middle]);
    let human = human.exits(0).says("is found to be peak-limit").says("5% of each simulated");
    assert!(human.stdout.contains("largest batch"), "{}", human.stdout);
    assert!(human.stdout.contains("58.0 MiB"), "{}", human.stdout);

    for (arguments, code, said) in [
        (&["forward", "--param", "batch", "--from", "0"][..], 2, "0 is no value to try"),
        (&["forward", "--param", "batch", "--from", "9", "--to", "8"], 2, "9 is above 8"),
        (&["forward", "--param", "batch", "--device", "sim:h2000"], 2, "did you mean `h200`?"),
        (&["forward", "--param", "batch", "--device", "cpu"], 2, "has no capacity"),
        (&["forward", "--param", "batch", "--margin", "100%"], 2, "leaves nothing of sim:"),
        (&["forward", "--param", "seq"], 2, "has a case `seq`: there is `batch`"),
        (&["without_cases", "--param", "batch"], 2, "none has cases"),
        (&["of_two", "--param", "dtype"], 2, "only a number can be searched for"),
        (&["of_two", "--param", "batch", "--case", "dtype=bf16"], 2, "`dtype=bf16`"),
        (&["forward"], 2, "--param <NAME>"),
        (&["--param", "batch"], 2, "fit wants one test"),
        (&["no_such_test", "--param", "batch"], 4, "no memory test matches `no_such_test`"),
        (&["not_above", "--param", "batch"], 100, "batch=8 on sim:h200"),
    ] {
        fit(&project, arguments).exits(code).says(said);
    }
}
