//! Code that users can write after reading only the documentation: the trial inside an iteration,
//! attributes that a macro generates, bodies that never return, and a subscriber of the test. Also
//! the output of a plain `cargo test` about a leak.

use serde_json::json;

use crate::fixture::Project;

/// Blocks are 1,024 elements of f32, or `batch` times as many: 4,096 B and multiples of it.
const TESTS: &str = r#"
#![allow(dead_code)]
use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Audit, LargestBatch, Trial, log_usage, mem_test};
use tracing_subscriber::prelude::*;

#[mem_test(max_growth = "0 B", iterations = 3, warmup = 1, baseline = false)]
fn inside(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    trial.iterate(|index| {
        let block = Tensor::zeros(1024, DType::F32, device)?;
        assert_eq!(trial.usage().allocated, 4096);
        trial.mark(format!("iteration {index}"));
        assert_eq!(trial.devices()?.len(), 1);
        drop(block);
        assert_eq!(trial.usage().peak_allocated, 4096);
        trial.reset_peak();
        assert_eq!(trial.usage().peak_allocated, 0);
        Result::Ok(())
    })?;
    trial.mark("after");
    Ok(())
}

#[mem_test(iterations = 2, baseline = false)]
#[should_panic(expected = "called twice")]
fn inside_once_more(trial: &mut Trial) {
    trial.iterate(|_| trial.iterate(|_| ()));
}

/// A trial is shared with threads.
#[mem_test(iterations = 2, baseline = false)]
fn on_threads(trial: &mut Trial) {
    trial.iterate(|_| {
        std::thread::scope(|scope| scope.spawn(|| trial.mark("aside")).join()).unwrap();
    });
}

macro_rules! grows {
    ($name:ident, $growth:literal, $iterations:expr, $batches:expr, $power:expr, $trial:ty) => {
        #[mem_test(
            max_growth = $growth,
            iterations = $iterations,
            baseline = false,
            cases(batch = $batches),
            scaling(peak_allocated <= "batch")
        )]
        fn $name(trial: $trial) -> Result<()> {
            let batch = trial.case::<usize>("batch")?.pow($power);
            let device = trial.device();
            trial.iterate(|_| Tensor::zeros(1024 * batch, DType::F32, device).map(drop))
        }
    };
}
grows!(by_batch, "0 B", 2, [1, 8], 1, &mut Trial);
grows!(by_its_square, "0 B", 2, [1, 8], 2, &mut Trial);

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
fn never_returns() -> ! {
    panic!("on purpose")
}

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
fn never_returns_on<'a>(_device: &'a Device) -> ! {
    panic!("on purpose")
}

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
fn never_returns_from(trial: &mut Trial) -> ! {
    trial.mark("before");
    panic!("on purpose")
}

#[mem_test(baseline = false)]
fn texts_and_ranges_of_any_kind(device: &Device) -> Result<()> {
    let label = String::from("label");
    log_usage(&label, device);
    log_usage(label, device);
    let mut audit = Audit::every(2_usize).alert_above(String::from("1 GiB"));
    audit.step(device)?;
    let search = LargestBatch::new(1..9).limit(String::from("1 GiB"));
    assert_eq!(search.find(device, |batch| Tensor::zeros(batch, DType::F32, device))?, 8);
    Ok(())
}

fn leaks(trial: &Trial) -> Result<()> {
    let mut kept = Vec::with_capacity(16);
    trial.iterate(|_| {
        let _span = tracing::info_span!("step").entered();
        kept.push(Tensor::zeros(1024, DType::F32, trial.device())?);
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn own_subscriber(trial: &mut Trial) -> Result<()> {
    tracing_subscriber::registry().init();
    leaks(trial)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn own_subscriber_late(trial: &mut Trial) -> Result<()> {
    let _first = Tensor::zeros(1024, DType::F32, trial.device())?;
    tracing::subscriber::set_global_default(
        tracing_subscriber::registry().with(memcheck_runtime::Scopes),
    )
    .map_err(candle_core::Error::wrap)?;
    leaks(trial)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn no_subscriber(trial: &mut Trial) -> Result<()> {
    leaks(trial)
}

#[mem_test(max_growth = "0 B", iterations = 1, baseline = false)]
fn one_iteration(trial: &mut Trial) -> Result<()> {
    leaks(trial)
}
"#;

#[test]
fn code_of_users_compiles_and_is_measured() {
    let project = Project::bare(
        "tracing = \"0.1\"\n[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n\
         tracing-subscriber = { version = \"0.3\", default-features = false, \
         features = [\"registry\", \"std\"] }\n",
    );
    project.write("tests/mem.rs", TESTS);
    let run = project.run(&["--verbose"]);
    for clean in [
        "inside",
        "inside_once_more",
        "on_threads",
        "by_batch::batch_1",
        "by_batch::batch_8",
        "never_returns",
        "never_returns_on",
        "never_returns_from",
        "texts_and_ranges_of_any_kind",
    ] {
        assert_eq!(run.codes(clean), [""; 0], "{clean}\n{}", run.stderr);
    }

    // A mark for each iteration, including the warm-up, in order.
    let inside = run.test("inside");
    let marks: Vec<_> = inside["marks"].as_array().expect("marks").iter().collect();
    let labels: Vec<_> = marks.iter().map(|mark| mark["label"].clone()).collect();
    assert_eq!(
        labels,
        ["iteration 0", "iteration 1", "iteration 2", "iteration 3", "after"].map(|l| json!(l))
    );
    let live: Vec<_> = marks.iter().map(|mark| mark["allocated"]["host"].clone()).collect();
    assert_eq!(live, [4_096, 4_096, 4_096, 4_096, 0].map(|bytes| json!(bytes)));
    assert_eq!(
        inside["metrics"]["host"]["peak_allocated"], 4_096,
        "the peak is not that of the whole body"
    );
    assert_eq!(run.test("on_threads")["marks"].as_array().map(Vec::len), Some(4));

    // Two values cannot confirm a law: 8 x 4,096 B is about the first power, 64 x the second.
    let law = &run.test("by_batch::batch_8")["laws"][0];
    assert_eq!((&law["law"], &law["few"]), (&json!("about batch"), &json!({ "batch": 2 })));
    let expected =
        "peak = no exact law can be confirmed with so few values (2 of batch), about batch";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert_eq!(run.codes("by_its_square::batch_8"), ["scaling"]);

    // With a subscriber of the test, the second run must find the same bytes and their call site.
    // The scope is known only if the subscriber has the layer.
    for (test, scope) in [
        ("own_subscriber", json!(null)),
        ("own_subscriber_late", json!("step")),
        ("no_subscriber", json!("step")),
    ] {
        assert_eq!(run.codes(test), ["leak"], "{test}");
        let finding = run.test(test)["findings"][0].clone();
        assert_eq!(finding["bytes_per_iteration"], 4_096);
        let site = &finding["sites"][0];
        assert_eq!((&site["operation"], &site["scope"]), (&json!("zeros"), &scope), "{test}");
        assert_eq!((&site["count"], &site["tensor"]), (&json!(10), &json!("[1024] f32")));
    }
    let profile = ["profile", "own_subscriber", "--exact", "--device", "cpu"];
    project.memcheck(&profile).exits(100).prints("leak: host grows by 4,096 B");

    // One iteration cannot prove growth, two can.
    assert_eq!(run.codes("one_iteration"), ["not-measured"]);
    let two = project.run(&["one_iteration", "--iterations", "2"]).exits(100);
    assert_eq!(two.codes("one_iteration"), ["leak"]);

    // The output about a leak under a plain harness must have the same content as that of the
    // command.
    let output = project.cargo_test().args(["--", "no_subscriber"]).output().expect("cargo runs");
    assert_eq!(output.status.code(), Some(101));
    let stdout = String::from_utf8_lossy(&output.stdout);
    // Several tests leak, and they end in any order.
    let findings = run.stderr.split("leak: ").skip(1);
    let mut findings =
        findings.map(|finding| finding.lines().map(str::trim).take(4).collect::<Vec<&str>>());
    let in_step = |lines: &Vec<&str>| lines.contains(&"zeros [1024] f32 in step");
    let lines = findings.find(in_step).expect("a leak in the scope `step`");
    for line in lines.iter().chain(&["cause: tensors of each iteration are kept (tensor-kept)"]) {
        assert!(stdout.contains(line), "`{line}` is not in\n{stdout}");
    }
}
