//! Tests whose figures differ from run to run. A file counts the processes of each test, and the
//! body allocates 1 MiB more in every second process, so that the differences are the same in each
//! run of this suite.

use serde_json::{Value, json};

use crate::fixture::{Programs, Run};

const MIB: u64 = 1 << 20;

fn programs() -> Programs {
    Programs::of("unstable").with_baselines()
}

/// A run whose bodies count their processes in the folder of `programs`.
fn counted(programs: &Programs, arguments: &[&str]) -> Run {
    let folder = programs.path().to_str().expect("a path in UTF-8");
    programs.run_with("cpu", arguments, &[("UNSTABLE_FOLDER", folder)])
}

/// The same with the output for people.
fn human(programs: &Programs, arguments: &[&str]) -> Run {
    let folder = programs.path().to_str().expect("a path in UTF-8");
    let arguments = [&["run", "--device", "cpu", "--no-ci"], arguments].concat();
    programs.memcheck_with(&arguments, &[("UNSTABLE_FOLDER", folder)])
}

/// The number of processes of a test since the last call.
fn processes(programs: &Programs, test: &str) -> usize {
    let file = format!("{test}.processes");
    let count = programs.read(&file).len();
    std::fs::remove_file(programs.path().join(file)).expect("the file is removed");
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
    let programs = programs();
    // Without the file `moved` the figures of the last two tests are accepted.
    let of_baseline = ["unstable::above_its_baseline", "unstable::baseline_"];
    counted(&programs, &of_baseline).exits(0);
    programs.memcheck(&["accept"]).exits(0);
    for test in ["baseline_between", "above_its_baseline"] {
        assert_eq!(
            processes(&programs, test),
            2,
            "{test}: one process measures, and one explains the new figures"
        );
    }
    programs.write("moved", "");

    let run = counted(&programs, &[]).exits(100);
    let (high, low) = (2 * MIB, MIB);
    // Negative controls: a steady test has one process, or two if it fails.
    assert_eq!((run.codes("steady").len(), processes(&programs, "steady")), (0, 1));
    assert_eq!(run.test("steady")["repeat"], Value::Null);
    assert_eq!(run.codes("steady_above_its_limit"), ["peak-limit"]);
    assert_eq!(processes(&programs, "steady_above_its_limit"), 2);
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
    let expected = "`peak_allocated` of host is 1,048,576 B (1.00 MiB) to 2,097,152 B (2.00 MiB) in 5 \
                runs, and exceeds `max_peak` of 1,572,864 B (1.50 MiB) in 3 of them";
    assert_eq!(message, expected);
    // The third process had call stacks, and measured the figures of the first.
    assert_eq!(found["sites"][0]["bytes"], high, "{found}");
    assert_eq!(run.test("limit_between")["repeat"]["runs"], 5);
    assert_eq!(peaks(&run.test("limit_between")), values);
    assert_eq!(processes(&programs, "limit_between"), 5);

    // Only the live bytes between two iterations differ.
    assert_eq!((run.codes("frees_later").len(), processes(&programs, "frees_later")), (0, 5));
    let moved = "the longer run measured other figures, so this test is not deterministic: live \
                 bytes of host after iteration 4 are 2,048 B (2.00 KiB) in the first run and 6,144 \
                 B (6.00 KiB) in the longer run";
    let line = run.test("frees_later");
    assert_eq!(line["notes"], json!([moved]));
    assert_eq!(line["repeat"], json!({"runs": 5, "figures": []}));

    for test in
        ["above_its_limit_in_the_longer_run", "above_its_limit_in_the_setup_of_the_longer_run"]
    {
        let found = finding(&run, test);
        assert_eq!(found["code"], "unstable");
        assert_eq!(found["range"]["values"].as_array().unwrap().len(), 5, "{found}");
        assert_eq!(processes(&programs, test), 5);
    }

    let found = finding(&run, "limit_between_small_blocks");
    assert_eq!((&found["code"], &found["space"]), (&json!("unstable"), &json!("host/small")));
    let peaks_of_small = found["range"]["values"].as_array().unwrap();
    let above: Vec<bool> = peaks_of_small.iter().map(|value| value.as_u64() > Some(450)).collect();
    assert_eq!(above, [true, false, true, false, true], "{found}");
    assert_eq!(processes(&programs, "limit_between_small_blocks"), 5);

    assert_eq!(run.codes("above_its_limit"), ["peak-limit"]);
    assert_eq!(peaks(&run.test("above_its_limit")), values);
    assert_eq!(processes(&programs, "above_its_limit"), 5);

    assert_eq!(run.codes("below_its_limit"), ["missing-baseline"]);
    assert_eq!(run.test("below_its_limit")["status"], "passed");
    assert_eq!(peaks(&run.test("below_its_limit")), values);
    assert_eq!(processes(&programs, "below_its_limit"), 5);

    // A limit relative to that test compares all of its runs.
    let found = finding(&run, "relative_to_limit_between");
    assert_eq!((&found["code"], &found["limit"]), (&json!("unstable"), &json!(3 * MIB / 4)));
    let message = found["message"].as_str().unwrap();
    assert!(message.ends_with("in several runs; only some runs exceed the limit"), "{message}");

    let found = finding(&run, "baseline_between");
    assert_eq!((&found["code"], &found["baseline"]), (&json!("unstable"), &json!(low)));
    assert_eq!(run.codes("above_its_baseline"), ["peak-regression"]);
    // Only the figures of the regression can be accepted.
    assert!(programs.has(&programs.pending("above_its_baseline@cpu")));
    assert!(!programs.has(&programs.pending("baseline_between@cpu")));

    // The human output must also mention a range that breaks no limit.
    for test in ["above_its_baseline", "baseline_between"] {
        assert_eq!(processes(&programs, test), 5, "{test}");
    }
    let below = human(&programs, &["--exact", "unstable::below_its_limit"]).exits(0);
    below.prints("note: the test is not deterministic: `");
}

#[test]
fn a_plain_cargo_test_judges_five_runs_too() {
    let programs = programs();
    programs.write("moved", "");
    let mut tests = programs.cargo_test();
    tests.arg("unstable::").env("UNSTABLE_FOLDER", programs.path());
    let output = tests.output().expect("cargo runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(101), "{stdout}");
    for line in [
        "test unstable::steady ... ok",
        "test unstable::below_its_limit ... ok",
        "unstable: `peak_allocated` of host is 1,048,576 B (1.00 MiB) to 2,097,152 B (2.00 MiB) in 5",
        "peak-limit: the peak in host is 2,097,152 B (2.00 MiB) (limit 524,288 B",
        "note: the test is not deterministic: `peak_allocated` of host is 1,048,576 B",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    // Under plain `cargo test` one more process can decide the growth of a test, so there are at
    // least five. The runs of the command above check that a steady test has no additional process.
    for test in ["limit_between", "above_its_limit", "below_its_limit"] {
        assert!(processes(&programs, test) >= 5, "{test}");
    }
}

#[test]
fn repeats_report_every_figure_that_is_not_identical() {
    let programs = programs();
    let run = counted(&programs, &["--repeat", "4", "--exact", "unstable::steady"]).exits(0);
    assert_eq!(run.summary()["repeat"], json!({"runs": 4, "tests": 1, "identical": 1}));
    assert_eq!(run.test("steady")["repeat"], json!({"runs": 4, "figures": []}));
    assert_eq!(processes(&programs, "steady"), 4);

    // The range does not contain a limit, and the test has no baseline.
    let both = ["--exact", "unstable::steady", "unstable::below_its_limit"];
    let run = counted(&programs, &[&["--repeat", "3"][..], &both].concat()).exits(100);
    assert_eq!(run.summary()["repeat"], json!({"runs": 3, "tests": 2, "identical": 1}));
    assert_eq!(run.codes("steady"), [""; 0]);
    let codes = run.codes("below_its_limit");
    assert!(codes.contains(&"unstable".to_owned()), "{codes:?}");
    assert_eq!(peaks(&run.test("below_its_limit")), json!([2 * MIB, MIB, 2 * MIB]));
    assert_eq!(processes(&programs, "below_its_limit"), 3);
    assert!(!programs.has(&programs.pending("below_its_limit@cpu")));

    let steady = human(&programs, &["--repeat", "2", "--exact", "unstable::steady"]).exits(0);
    steady.prints("1 test, 2 runs each: all figures identical");
    let refused = |arguments: &[&str]| counted(&programs, arguments).exits(2);
    refused(&["--repeat", "0"]).prints("--repeat takes a whole number of at least 1");
    refused(&["--repeat", "2", "--explain", "always"]).prints("leave --explain out");
}
