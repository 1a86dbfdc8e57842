//! Tests whose figures differ from run to run. A file counts the processes of each test, and the
//! body allocates 1 MiB more in every second process, so that the differences are the same in each
//! run of this suite.

use serde_json::{Value, json};

use crate::fixture::{Project, Run};

const TESTS: &str = r#"
/// The number of processes of a test before this one.
fn processes(test: &str) -> usize {
    use std::io::Write;
    let path = format!("{test}.processes");
    let before = std::fs::metadata(&path).map_or(0, |file| file.len() as usize);
    let file = std::fs::File::options().append(true).create(true).open(&path);
    file.unwrap().write_all(b".").unwrap();
    before
}

/// Allocates `mib` MiB in each iteration.
fn allocates(trial: &mut Trial, mib: usize) {
    trial.iterate(|_| drop(std::hint::black_box(vec![1_u8; mib << 20])));
}

/// Allocates `mib` in the first process of a test, 1 MiB less in the second, and so on.
fn alternates(trial: &mut Trial, test: &str, mib: usize) {
    let mib = mib - processes(test) % 2;
    allocates(trial, mib);
}

#[mem_test(baseline = false, max_peak = "1 MiB")]
fn steady(trial: &mut Trial) {
    processes("steady");
    allocates(trial, 1);
}

#[mem_test(baseline = false, max_peak = "1 MiB")]
fn steady_above_its_limit(trial: &mut Trial) {
    processes("steady_above_its_limit");
    allocates(trial, 2);
}

#[mem_test(baseline = false, max_peak = "1536 KiB")]
fn limit_between(trial: &mut Trial) {
    alternates(trial, "limit_between", 2);
}

#[mem_test(baseline = false, max_peak = "512 KiB")]
fn above_its_limit(trial: &mut Trial) {
    alternates(trial, "above_its_limit", 2);
}

#[mem_test(max_peak = "4 MiB")]
fn below_its_limit(trial: &mut Trial) {
    alternates(trial, "below_its_limit", 2);
}

/// Frees a block one iteration later in every second process. A longer run decides whether the
/// other block, which stays, is growth.
#[mem_test(baseline = false)]
fn frees_later(trial: &mut Trial) {
    let last = 5 + processes("frees_later") % 2;
    let (mut freed, mut kept) = (Vec::new(), Vec::new());
    trial.iterate(|i| match i {
        4 => (freed, kept) = (vec![1_u8; 4_096], vec![1_u8; 2_048]),
        _ if i == last => freed = Vec::new(),
        _ => {}
    });
    drop((freed, kept));
}

/// No baseline has small blocks, but limits apply to them.
#[mem_test(baseline = false, max_peak = "450 B")]
fn limit_between_small_blocks(trial: &mut Trial) {
    let bytes = if processes("limit_between_small_blocks") % 2 == 0 { 600 } else { 300 };
    trial.iterate(|_| drop(std::hint::black_box(vec![1_u8; bytes])));
}

/// Only the second process, which is the longer run, is above the limit.
#[mem_test(baseline = false, max_peak = "1536 KiB", max_growth = "1 KiB")]
fn above_its_limit_in_the_longer_run(trial: &mut Trial) {
    let mib = if processes("above_its_limit_in_the_longer_run") == 1 { 2 } else { 1 };
    let mut kept = Vec::new();
    trial.iterate(|_| {
        drop(std::hint::black_box(vec![1_u8; mib << 20]));
        kept.push(vec![1_u8; 1_024]);
    });
}

/// The set-up of the second process alone, which is the longer run, is above the limit.
#[mem_test(baseline = false, max_peak = "1536 KiB")]
fn above_its_limit_in_the_setup_of_the_longer_run(trial: &mut Trial) {
    let mib = if processes("above_its_limit_in_the_setup_of_the_longer_run") == 1 { 2 } else { 1 };
    drop(std::hint::black_box(vec![1_u8; mib << 20]));
    let mut kept = Vec::new();
    trial.iterate(|i| if i == 4 { kept.push(vec![1_u8; 2_048]) });
}

#[mem_test(baseline = false, max_peak = "0.75 x limit_between")]
fn relative_to_limit_between(trial: &mut Trial) {
    allocates(trial, 1);
}

/// Steady until the file `moved` exists.
fn moves(trial: &mut Trial, test: &str, mib: usize) {
    if std::path::Path::new("moved").exists() {
        alternates(trial, test, mib);
    } else {
        processes(test);
        allocates(trial, 1);
    }
}

#[mem_test]
fn baseline_between(trial: &mut Trial) {
    moves(trial, "baseline_between", 2);
}

#[mem_test]
fn above_its_baseline(trial: &mut Trial) {
    moves(trial, "above_its_baseline", 3);
}
"#;

const MIB: u64 = 1 << 20;

/// The number of processes of a test since the last call.
fn processes(project: &Project, test: &str) -> usize {
    let file = format!("{test}.processes");
    let count = project.read(&file).len();
    std::fs::remove_file(project.path().join(file)).expect("the file is removed");
    count
}

#[track_caller]
fn finding(run: &Run, test: &str) -> Value {
    let line = run.test(test);
    assert_eq!(line["findings"].as_array().map(Vec::len), Some(1), "{line}");
    line["findings"][0].clone()
}

fn peaks(line: &Value) -> Value {
    let figures = line["repeat"]["figures"].as_array().expect("figures that differ");
    let peak = figures.iter().find(|range| range["metric"] == "peak_allocated");
    peak.expect("the peak differs")["values"].clone()
}

#[test]
fn figures_that_differ_are_judged_over_five_runs() {
    let project = Project::new(TESTS);
    // Without the file `moved` the figures of the last two tests are accepted.
    project.run(&["_baseline", "baseline_"]).exits(0);
    project.memcheck(&["accept"]).exits(0);
    for test in ["baseline_between", "above_its_baseline"] {
        assert_eq!(
            processes(&project, test),
            2,
            "{test}: one process measures, and one explains the new figures"
        );
    }
    project.write("moved", "");

    let run = project.run(&[]).exits(100);
    let (high, low) = (2 * MIB, MIB);
    // Negative controls: a steady test has one process, or two if it fails.
    assert_eq!((run.codes("steady").len(), processes(&project, "steady")), (0, 1));
    assert_eq!(run.test("steady")["repeat"], Value::Null);
    assert_eq!(run.codes("steady_above_its_limit"), ["peak-limit"]);
    assert_eq!(processes(&project, "steady_above_its_limit"), 2);
    assert_eq!(run.test("steady_above_its_limit")["repeat"], Value::Null);

    let found = finding(&run, "limit_between");
    assert_eq!(found["code"], "unstable");
    assert_eq!((&found["figure"], &found["limit"]), (&json!(high), &json!(3 * MIB / 2)));
    let values = json!([high, low, high, low, high]);
    assert_eq!(found["range"]["values"], values, "{found}");
    assert_eq!(
        (&found["range"]["least"], &found["range"]["greatest"]),
        (&json!(low), &json!(high))
    );
    let message = found["message"].as_str().unwrap();
    let expected = "`peak_allocated` of host is 1,048,576 B (1.0 MiB) to 2,097,152 B (2.0 MiB) in 5 \
                runs, and exceeds `max_peak` of 1,572,864 B (1.5 MiB) in 3 of them";
    assert_eq!(message, expected);
    // The third process had call stacks, and measured the figures of the first.
    assert_eq!(found["sites"][0]["bytes"], high, "{found}");
    assert_eq!(run.test("limit_between")["repeat"]["runs"], 5);
    assert_eq!(peaks(&run.test("limit_between")), values);
    assert_eq!(processes(&project, "limit_between"), 5);

    // Only the live bytes between two iterations differ.
    assert_eq!((run.codes("frees_later").len(), processes(&project, "frees_later")), (0, 5));
    let moved = "the longer run measured other figures, so this test is not deterministic: live \
                 bytes of host after iteration 4 are 2,048 B (2.0 KiB) in the first run and 6,144 \
                 B (6.0 KiB) in the longer run";
    let line = run.test("frees_later");
    assert_eq!(line["notes"], json!([moved]));
    assert_eq!(line["repeat"], json!({"runs": 5, "figures": []}));

    for test in
        ["above_its_limit_in_the_longer_run", "above_its_limit_in_the_setup_of_the_longer_run"]
    {
        let found = finding(&run, test);
        assert_eq!(found["code"], "unstable");
        assert_eq!(found["range"]["values"].as_array().unwrap().len(), 5, "{found}");
        assert_eq!(processes(&project, test), 5);
    }

    let found = finding(&run, "limit_between_small_blocks");
    assert_eq!((&found["code"], &found["space"]), (&json!("unstable"), &json!("host/small")));
    let peaks_of_small = found["range"]["values"].as_array().unwrap();
    let above: Vec<bool> = peaks_of_small.iter().map(|value| value.as_u64() > Some(450)).collect();
    assert_eq!(above, [true, false, true, false, true], "{found}");
    assert_eq!(processes(&project, "limit_between_small_blocks"), 5);

    assert_eq!(run.codes("above_its_limit"), ["peak-limit"]);
    assert_eq!(peaks(&run.test("above_its_limit")), values);
    assert_eq!(processes(&project, "above_its_limit"), 5);

    assert_eq!(run.codes("below_its_limit"), ["missing-baseline"]);
    assert_eq!(run.test("below_its_limit")["status"], "passed");
    assert_eq!(peaks(&run.test("below_its_limit")), values);
    assert_eq!(processes(&project, "below_its_limit"), 5);

    // A limit relative to that test compares all of its runs.
    let found = finding(&run, "relative_to_limit_between");
    assert_eq!((&found["code"], &found["limit"]), (&json!("unstable"), &json!(3 * MIB / 4)));
    let message = found["message"].as_str().unwrap();
    assert!(message.ends_with("in several runs; only some runs exceed the limit"), "{message}");

    let found = finding(&run, "baseline_between");
    assert_eq!((&found["code"], &found["baseline"]), (&json!("unstable"), &json!(low)));
    assert_eq!(run.codes("above_its_baseline"), ["peak-regression"]);
    // Only the figures of the regression can be accepted.
    assert!(project.has("tests/snapshots/mem__above_its_baseline@cpu.snap.new"));
    assert!(!project.has("tests/snapshots/mem__baseline_between@cpu.snap.new"));

    // The human output must also mention a range that breaks no limit.
    for test in ["above_its_baseline", "baseline_between"] {
        assert_eq!(processes(&project, test), 5, "{test}");
    }
    let arguments = ["run", "--device", "cpu", "--no-ci", "--exact", "below_its_limit"];
    project.memcheck(&arguments).exits(0).prints("note: the test is not deterministic: `");
}

#[test]
fn a_plain_cargo_test_judges_five_runs_too() {
    let project = Project::new(TESTS);
    project.write("moved", "");
    let output = project.cargo_test().output().expect("cargo runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(101), "{stdout}");
    for line in [
        "test steady ... ok",
        "test below_its_limit ... ok",
        "unstable: `peak_allocated` of host is 1,048,576 B (1.0 MiB) to 2,097,152 B (2.0 MiB) in 5",
        "peak-limit: the peak in host is 2,097,152 B (2.0 MiB) (limit 524,288 B",
        "note: the test is not deterministic: `peak_allocated` of host is 1,048,576 B",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    // Under plain `cargo test` one more process can decide the growth of a test, so there are at
    // least five. The runs of the command above check that a steady test has no additional process.
    for test in ["limit_between", "above_its_limit", "below_its_limit"] {
        assert!(processes(&project, test) >= 5, "{test}");
    }
}

#[test]
fn repeats_report_every_figure_that_is_not_identical() {
    let project = Project::new(TESTS);
    let run = project.run(&["--repeat", "4", "--exact", "steady"]).exits(0);
    assert_eq!(run.summary()["repeat"], json!({"runs": 4, "tests": 1, "identical": 1}));
    assert_eq!(run.test("steady")["repeat"], json!({"runs": 4, "figures": []}));
    assert_eq!(processes(&project, "steady"), 4);

    // The range does not contain a limit, and the test has no baseline.
    let run = project.run(&["--repeat", "3", "--exact", "steady", "below_its_limit"]).exits(100);
    assert_eq!(run.summary()["repeat"], json!({"runs": 3, "tests": 2, "identical": 1}));
    assert_eq!(run.codes("steady"), [""; 0]);
    let codes = run.codes("below_its_limit");
    assert!(codes.contains(&"unstable".to_owned()), "{codes:?}");
    assert_eq!(peaks(&run.test("below_its_limit")), json!([2 * MIB, MIB, 2 * MIB]));
    assert_eq!(processes(&project, "below_its_limit"), 3);
    assert!(!project.has("tests/snapshots/mem__below_its_limit@cpu.snap.new"));

    let people = ["run", "--device", "cpu", "--no-ci", "--repeat", "2", "--exact", "steady"];
    project.memcheck(&people).exits(0).prints("1 test, 2 runs each: all figures identical");
    project.run(&["--repeat", "0"]).exits(2).prints("--repeat takes a whole number of at least 1");
    project.run(&["--repeat", "2", "--explain", "always"]).exits(2).prints("leave --explain out");
}
