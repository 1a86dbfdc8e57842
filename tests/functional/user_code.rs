//! Code that users can write after reading only the documentation: the trial inside an iteration,
//! attributes that a macro generates, bodies that never return, and a subscriber of the test. Also
//! the output of a plain `cargo test` about a leak.

use serde_json::json;

use crate::fixture::Programs;

#[test]
fn code_of_users_compiles_and_is_measured() {
    let programs = Programs::of("user_code");
    let run = programs.run("cpu", &["--verbose"]);
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
    // The scope is known only if the subscriber has the layer. A registry without any layer keeps each
    // span that is closed: 96 B, in pages that double, so that the places of the `Vec` are counted
    // beside them, 8 B each.
    for (test, bytes, scope) in [
        ("own_subscriber", 4_096 + 96 + 8, json!(null)),
        ("own_subscriber_late", 4_096, json!("step")),
        ("no_subscriber", 4_096, json!("step")),
    ] {
        assert_eq!(run.codes(test), ["leak"], "{test}");
        let finding = run.test(test)["findings"][0].clone();
        assert_eq!(finding["bytes_per_iteration"], bytes, "{test}");
        let site = &finding["sites"][0];
        assert_eq!((&site["operation"], &site["scope"]), (&json!("zeros"), &scope), "{test}");
        assert_eq!((&site["count"], &site["tensor"]), (&json!(10), &json!("[1024] f32")));
    }
    let profile = ["profile", "user_code::own_subscriber", "--exact", "--device", "cpu"];
    programs.memcheck(&profile).exits(100).prints("leak: host grows by 4,200 B");

    // One iteration cannot prove growth, two can.
    assert_eq!(run.codes("one_iteration"), ["not-measured"]);
    let two = programs.run("cpu", &["user_code::one_iteration", "--iterations", "2"]).exits(100);
    assert_eq!(two.codes("one_iteration"), ["leak"]);

    // The output about a leak under a plain harness must have the same content as that of the
    // command.
    let mut plain = programs.cargo_test();
    let output = plain.args(["--", "user_code::no_subscriber"]).output().expect("cargo runs");
    assert_eq!(output.status.code(), Some(101));
    let stdout = String::from_utf8_lossy(&output.stdout);
    // Several tests leak, and they end in any order. Only the command reads the sources.
    let findings = run.stderr.split("leak: ").skip(1);
    let without_source = |finding: &'_ str| -> Vec<String> {
        let lines = finding.lines().map(str::trim).filter(|line| !line.contains(" | "));
        lines.take(4).map(str::to_owned).collect()
    };
    let mut findings = findings.map(without_source);
    let in_step = |lines: &Vec<String>| lines.iter().any(|line| line == "zeros [1024] f32 in step");
    let lines = findings.find(in_step).expect("a leak in the scope `step`");
    let cause = "cause: tensors of each iteration are kept (tensor-kept)".to_owned();
    for line in lines.iter().chain([&cause]) {
        assert!(stdout.contains(line), "`{line}` is not in\n{stdout}");
    }
}
