//! `--soak`: leaks that begin late or are rare, which no other run finds.

use serde_json::{Value, json};

use crate::fixture::{Project, Run};

const TESTS: &str = r#"
use std::time::{Duration, Instant};

type Result = candle_core::Result<()>;

fn block(device: &Device) -> candle_core::Result<Tensor> {
    Tensor::zeros(1 << 16, DType::U8, device)
}

/// 64 KiB in every 2,000th iteration.
#[mem_test(max_growth = "0 B")]
fn leaks_rarely(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(10_000);
    trial.iterate(|i| {
        if i % 2_000 == 1_999 {
            kept.push(block(&device)?);
        }
        candle_core::Result::Ok(())
    })
}

/// 64 KiB in every iteration after one second.
#[mem_test(max_growth = "0 B", max_retained = "1 TiB")]
fn leaks_late(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(1_000_000);
    let started = Instant::now();
    trial.iterate(|_| {
        if started.elapsed() > Duration::from_secs(1) {
            kept.push(block(&device)?);
        }
        candle_core::Result::Ok(())
    })
}

/// A ring of twelve blocks, and work.
#[mem_test(max_growth = "0 B")]
fn clean(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    let mut ring = std::collections::VecDeque::new();
    trial.iterate(|_| {
        block(&device)?;
        ring.push_back(block(&device)?);
        if ring.len() > 12 {
            ring.pop_front();
        }
        candle_core::Result::Ok(())
    })
}

/// Grows in every iteration, but within its limit.
#[mem_test(max_growth = "64 KiB", max_retained = "1 TiB")]
fn grows_within_its_limit(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(1_000_000);
    trial.iterate(|i| {
        if i < 20_000 {
            kept.push(Tensor::zeros(1 << 12, DType::U8, &device)?);
        }
        candle_core::Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B")]
fn has_data_for_500_iterations(trial: &mut Trial) -> Result {
    let device = trial.device().clone();
    trial.iterate(|i| match i {
        0..500 => block(&device).map(|_| ()),
        _ => candle_core::bail!("no data"),
    })
}

#[mem_test(max_growth = "0 B")]
fn dies_in_iteration_500(trial: &mut Trial) {
    trial.iterate(|i| {
        if i == 500 {
            std::process::abort()
        }
    });
}

#[mem_test]
fn does_not_iterate(trial: &mut Trial) {
    let _ = trial.device();
}
"#;

const NAMES: [&str; 7] = [
    "leaks_rarely",
    "leaks_late",
    "clean",
    "grows_within_its_limit",
    "has_data_for_500_iterations",
    "dies_in_iteration_500",
    "does_not_iterate",
];

/// The figures of a test without its growth.
fn figures(run: &Run, test: &str) -> Value {
    let mut metrics = run.exact_metrics(test);
    for figures in metrics.as_object_mut().unwrap().values_mut() {
        figures.as_object_mut().unwrap().remove("growth");
    }
    metrics
}

fn soaked(run: &Run, test: &str) -> (u64, f64, Value) {
    let soaked = run.test(test)["soaked"].clone();
    let number = |key: &str| soaked[key].as_f64().unwrap_or_else(|| panic!("{test}: {soaked}"));
    (number("iterations") as u64, number("seconds"), soaked["ended"].clone())
}

#[test]
fn a_soak_finds_late_and_rare_leaks_and_changes_no_other_figure() {
    let project = Project::new(TESTS);
    let threads = ["--test-threads", "4"];
    let short = project.run(&threads).exits(0);
    for test in NAMES {
        assert_eq!(short.test(test)["status"], "passed", "{test}: {}", short.test(test));
        assert_eq!(short.test(test)["soaked"], Value::Null);
    }
    project.memcheck(&["accept"]).exits(0);

    let run = project.run(&["--soak", "4s", threads[0], threads[1]]).exits(100);
    for test in NAMES {
        if test != "dies_in_iteration_500" {
            // A space that the test first uses in the soak is judged too.
            let (soaked, short) = (figures(&run, test), figures(&short, test));
            for (space, figures) in short.as_object().expect("spaces") {
                assert_eq!(&soaked[space], figures, "{test}: {space}");
            }
        }
    }
    for (test, line) in [("leaks_rarely", "tests/mem.rs:"), ("leaks_late", "tests/mem.rs:")] {
        assert!(run.codes(test).contains(&"leak".to_owned()), "{}", run.test(test));
        let finding = run.test(test)["findings"][0].clone();
        assert!(finding["bytes_per_iteration"].as_u64().unwrap() > 0, "{finding}");
        let growth = &run.test(test)["metrics"]["host"]["growth"];
        assert_eq!(&finding["bytes_per_iteration"], growth, "{finding}");
        let site = finding["sites"][0].clone();
        let place = format!("{}:{}", site["file"].as_str().unwrap(), site["line"]);
        assert!(place.contains(line), "{place}");
        assert_eq!(soaked(&run, test).2, Value::Null);
    }
    let rate = run.test("leaks_rarely")["metrics"]["host"]["growth"].as_u64().unwrap();
    assert!((25..=50).contains(&rate), "{rate} is far from 65,536 / 2,000");

    for test in ["clean", "grows_within_its_limit"] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
        let (iterations, seconds, ended) = soaked(&run, test);
        assert!(iterations > 500, "{test}: {iterations}");
        assert!(
            (3.9..20.0).contains(&seconds) && ended == Value::Null,
            "{test}: {seconds} {ended}"
        );
    }
    let growth = |run: &Run, test| run.test(test)["metrics"]["host"]["growth"].clone();
    let within = "grows_within_its_limit";
    assert_eq!(growth(&run, within), growth(&short, within));

    assert_eq!(run.codes("has_data_for_500_iterations"), ["undecided"]);
    let (iterations, _, ended) = soaked(&run, "has_data_for_500_iterations");
    assert_eq!((iterations, ended), (500, json!("the body returned an error")));
    let died = run.test("dies_in_iteration_500")["findings"][0].clone();
    assert_eq!(died["code"], "crashed");
    assert!(died["message"].as_str().unwrap().starts_with("in the soak: "), "{died}");
    let (iterations, _, ended) = soaked(&run, "does_not_iterate");
    assert_eq!((iterations, ended), (0, json!("the body does not iterate")));

    // For people, and flags that exclude each other.
    let text = project.memcheck(&["clean", "--device", "cpu", "--soak", "300ms", "--no-ci"]);
    let text = text.exits(0);
    assert!(text.stderr.contains("note: soak: "), "{}", text.stderr);
    // A machine that is busy can take longer than the 300ms.
    assert!(text.stderr.contains(" iterations in "), "{}", text.stderr);
    project.memcheck(&["run", "--soak", "1s", "--repeat", "2"]).exits(2);
    project
        .memcheck(&["run", "--soak", "soon"])
        .exits(2)
        .prints("--soak: `soon` is not a duration");
}
