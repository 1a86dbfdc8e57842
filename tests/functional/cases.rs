//! A test over cases: each combination is a test with a baseline and a line of output, under
//! `cargo test`, nextest and `cargo memcheck`.

use std::process::Command;

use crate::fixture::{Programs, cargo};

const TESTS: [(&str, u64); 4] = [
    ("model::forward::dtype_f32_rows_1", 4_096),
    ("model::forward::dtype_f32_rows_4", 16_384),
    ("model::forward::dtype_bf16_rows_1", 2_048),
    ("model::forward::dtype_bf16_rows_4", 8_192),
];

fn programs() -> Programs {
    Programs::of("cases").with_baselines()
}

#[test]
fn each_case_is_a_test_with_its_own_figures_and_baseline() {
    let programs = programs();
    let run_all =
        |arguments: &[&str]| programs.run("cpu", &[&["cases::model::forward"], arguments].concat());
    let run = run_all(&["--report", "junit=junit.xml"]).exits(0);
    assert_eq!((&run.summary()["passed"], &run.summary()["new"]), (&4.into(), &4.into()));
    for (test, bytes) in TESTS {
        let finished = run.test(test);
        assert_eq!(finished["metrics"]["host"]["peak_allocated"], bytes, "{test}");
        let case = finished["case"].as_object().unwrap();
        let name = format!(
            "model::forward::dtype_{}_rows_{}",
            case["dtype"].as_str().unwrap(),
            case["rows"].as_str().unwrap()
        );
        assert_eq!(name, test);
        assert!(programs.read("junit.xml").contains(&format!("<testcase name=\"cases::{test}\"")));
    }

    programs.memcheck(&["accept"]).exits(0);
    let snapshot = programs.baseline("model__forward__dtype_bf16_rows_4@cpu");
    let accepted = programs.read(&snapshot);
    assert!(accepted.contains("  dtype: bf16\n"), "{accepted}");
    assert!(accepted.contains("peak_allocated: 8192"), "{accepted}");
    assert_eq!(run_all(&["--ci"]).exits(0).summary()["new"], 0);

    // A regression of one case must not affect the others.
    programs.write(&snapshot, &accepted.replace("8192", "100"));
    let run = run_all(&[]).exits(100);
    assert_eq!(run.codes("model::forward::dtype_bf16_rows_4"), ["peak-regression"]);
    assert_eq!(run.summary()["passed"], 3);
    programs.write(&snapshot, &accepted.replace("dtype: bf16", "dtype: f16"));
    let run = run_all(&[]).exits(0);
    assert_eq!(run.codes("model::forward::dtype_bf16_rows_4"), ["uncomparable-baseline"]);
}

/// The name of its snapshot would be longer than the name of a file can be.
#[test]
fn a_case_with_a_long_value_has_a_baseline() {
    let programs = programs();
    let run = |arguments: &[&str]| {
        programs.run("cpu", &[&["cases::long_value"], arguments].concat()).exits(0)
    };
    assert_eq!(run(&[]).summary()["new"], 1);
    programs.memcheck(&["accept"]).exits(0);
    assert_eq!(run(&["--ci"]).summary()["new"], 0);
}

#[test]
fn cases_are_filtered_overridden_and_listed_by_name() {
    let programs = programs();
    programs.configure(
        "[[override]]\ntest = \"cases::model::forward::*_rows_4\"\nmax_peak = \"10000 B\"\n",
    );
    // No other test of the package has this part in its name.
    let part = ["run", "rows_4", "--device", "cpu", "--message-format", "json", "--no-ci"];
    let run = programs.memcheck(&part).exits(100);
    assert_eq!(run.json().iter().filter(|line| line["type"] == "test-finished").count(), 2);
    assert_eq!(run.codes("model::forward::dtype_f32_rows_4")[0], "peak-limit");
    assert_eq!(run.test("model::forward::dtype_bf16_rows_4")["status"], "passed");
    programs.run("cpu", &["--exact", "cases::model::forward"]).exits(4);
    programs.run("cpu", &["--exact", "cases::model::forward::dtype_f32_rows_1"]).exits(0);

    let list = ["list", "cases::model::", "--device", "cpu", "--message-format", "json"];
    let list = programs.memcheck(&list).exits(0);
    let lines = list.json();
    let listed: Vec<_> = lines.iter().filter(|line| line["type"] == "test").collect();
    assert_eq!(listed.len(), 4);
    assert_eq!(listed[0]["case"], serde_json::json!({"dtype": "bf16", "rows": "1"}));
}

#[test]
fn ignore_and_should_panic_apply_to_every_case() {
    let run = programs().run("cpu", &["cases::ignored", "cases::panics"]).exits(0);
    for test in ["ignored::n_1", "ignored::n_2"] {
        assert_eq!(run.test(test)["status"], "ignored");
    }
    for test in ["panics::n_1", "panics::n_minus_2"] {
        assert_eq!(run.test(test)["status"], "passed");
    }
}

#[test]
fn a_missing_case_or_a_case_of_another_type_is_an_error() {
    let filters = ["cases::unknown", "cases::unread", "cases::without"];
    let run = programs().run("cpu", &filters).exits(100);
    for (test, expected) in [
        (
            "unknown::batch_few_seq_128",
            "`size` is not a parameter of this test: its attribute has `batch`, `seq`",
        ),
        (
            "unread::batch_few",
            "the value `few` of the parameter `batch` cannot be parsed as `usize`",
        ),
        ("without", "`batch` is not a parameter of this test: its attribute has no `cases(…)`"),
    ] {
        assert_eq!(run.codes(test), ["test-failed"], "{test}");
        let message = run.test(test)["findings"][0]["message"].clone();
        assert!(message.as_str().unwrap().contains(expected), "{message}");
    }
    assert!(run.test("without").get("case").is_none());
}

/// A plain harness runs the cases of `model::forward`, with a limit that one case breaks.
fn run_harness(mut command: Command) -> (Option<i32>, String) {
    command.arg("cases::model::forward").env("MEMCHECK_MAX_PEAK", "10 KB");
    let output = command.output().expect("cargo runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_plain_cargo_test_runs_every_case_separately() {
    let (code, output) = run_harness(programs().cargo_test());
    assert_eq!(code, Some(101), "{output}");
    for (test, bytes) in TESTS {
        let result = if bytes > 10_000 { "FAILED" } else { "ok" };
        assert!(output.contains(&format!("test cases::{test} ... {result}")), "{test}\n{output}");
    }
}

#[test]
fn nextest_runs_every_case_separately() {
    let version = cargo().args(["nextest", "--version"]).output();
    if !version.is_ok_and(|output| output.status.success()) {
        // CI installs cargo-nextest, so the test must not be skipped there.
        assert!(std::env::var_os("CI").is_none(), "cargo-nextest is not installed");
        eprintln!("skipped: cargo-nextest is not installed");
        return;
    }
    let programs = programs();
    let (code, output) = run_harness(programs.cargo(&["nextest", "run", "--no-fail-fast"]));
    assert_eq!(code, Some(100), "{output}");
    assert!(output.contains("3 passed, 1 failed"), "{output}");
    assert!(output.contains("model::forward::dtype_f32_rows_4"), "{output}");
}

#[test]
fn a_test_above_its_capacity_does_not_fit() {
    let programs = programs();
    let test = "cases::above_its_capacity";
    let run_on = |device: &str, more: &[&str], variables: &[(&str, &str)]| {
        programs.run_with(device, &[&[test, "--exact"], more].concat(), variables)
    };
    let run = run_on("sim:h200", &[], &[]).exits(100);
    assert_eq!(run.codes(test), ["does-not-fit"]);
    let finding = run.test(test)["findings"][0].clone();
    assert_eq!((&finding["space"], &finding["limit"]), (&"cuda:0".into(), &(1 << 30).into()));
    assert_eq!(finding["figure"], 3_u64 << 29);
    let message = finding["message"].as_str().unwrap();
    for expected in [
        "refused an allocation of 536,870,912 B (512.0 MiB) with 1,073,741,824 B (1.00 GiB) live",
        "must fit into 1,073,741,824 B (1.00 GiB)",
    ] {
        assert!(message.contains(expected), "{message}");
    }
    let bytes_and_note = |site: &serde_json::Value| (site["bytes"].as_u64(), site["note"].clone());
    let sites = finding["sites"].as_array().unwrap();
    assert!(sites.iter().all(|site| site["operation"] == "zeros"), "{sites:#?}");
    assert_eq!(
        sites.iter().map(bytes_and_note).collect::<Vec<_>>(),
        [(Some(1 << 29), "requested and refused".into()), (Some(1 << 30), "activations".into())]
    );

    // A flag has precedence, and so has a variable. The capacity is exact.
    run_on("sim:h200", &["--fits", "24 GiB"], &[]).exits(0);
    run_on("sim:h200", &["--fits", "1610612736 B"], &[]).exits(0);
    let run = run_on("sim:h200", &["--fits", "1610612735 B"], &[]).exits(100);
    assert_eq!(run.codes(test), ["does-not-fit"]);
    run_on("sim:h200", &[], &[("MEMCHECK_FITS", "rtx4090")]).exits(0);

    // If the card itself has no room, the card is out of memory.
    let run = run_on("sim:h200,capacity=1280MiB", &[], &[]).exits(100);
    assert_eq!(run.codes(test), ["out-of-memory"]);
}

#[test]
fn a_test_within_its_capacity_passes_and_the_cpu_has_no_capacity() {
    let programs = programs();
    let run = programs.run("sim:h200", &["cases::within_its_capacity"]).exits(0);
    assert_eq!(run.test("within_its_capacity")["limits"]["fits"]["value"], 24_u64 << 30);

    let run = programs.run("cpu", &["cases::small::"]).exits(0);
    assert_eq!(run.summary()["passed"], 4);
    let list = ["list", "cases::small::", "--verbose", "--device", "cpu", "--fits", "t4"];
    let list = programs.memcheck(&list).exits(0);
    let row = list.stdout.lines().find(|line| line.trim_start().starts_with("fits ")).unwrap();
    assert!(row.contains("t4 (14.8 GiB)") && row.contains("flag"), "{row}");
}

#[test]
fn an_invalid_capacity_is_an_error_with_its_line() {
    let programs = programs();
    programs.configure("[default]\nfits = \"rtx4091\"\n");
    let run = programs.run("cpu", &[]).exits(96);
    run.prints("memcheck.toml").prints("line 2").prints("`rtx4090`");
    programs.configure("");
    programs.run("cpu", &["--fits", "a100"]).exits(2).prints("`a100-40g` or `a100-80g`");
}
