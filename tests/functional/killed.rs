//! Tests whose process a signal ends: each form of output has the line, the iteration and the next
//! step. Handlers of the program are kept, and the signals of forked children are not the test's.

use std::fs;

use serde_json::Value;

use crate::fixture::{Programs, Run};

const ABORT: &str = "SIGABRT (signal 6) ended the process";
const SEGMENTATION: &str = "SIGSEGV (signal 11) ended the process";

fn finding(run: &Run, test: &str) -> Value {
    assert_eq!(run.codes(test), ["crashed"], "{test}");
    run.test(test)["findings"][0].clone()
}

/// The first line of the message.
fn first_line(finding: &Value) -> String {
    let message = finding["message"].as_str().expect("a message");
    message.lines().next().expect("a line").to_owned()
}

#[test]
fn a_signal_has_the_iteration_and_the_line_that_it_ended() {
    let programs = Programs::of("killed");
    let place = |marker: &str| format!("{}:{}", programs.source(), programs.line(marker));
    let below = |marker: &str| format!("{}:{}", programs.source(), programs.line(marker) + 1);
    let at = |finding: &Value| {
        let at = &finding["keeps_at"];
        format!("{}:{}", at["file"].as_str().unwrap_or_default(), at["line"])
    };
    let test_body = "killed::panics_while_it_panics::body";
    for device in ["cpu", "sim"] {
        let run = programs.run(device, &[]).exits(100);
        for (test, message, marker) in [
            ("aborts", format!("{ABORT} in iteration 5 of 12"), "aborts"),
            ("reads_null", format!("{SEGMENTATION} in iteration 5 of 12"), "reads"),
            (
                "aborts_before_its_iterations",
                format!("{ABORT} before the first iteration"),
                "aborts early",
            ),
            ("aborts_on_a_thread", format!("{ABORT} in iteration 5 of 12"), "aborts on a thread"),
        ] {
            let finding = finding(&run, test);
            assert_eq!(first_line(&finding), message, "{device} {test}");
            assert_eq!(at(&finding), place(marker), "{device} {test}: {finding}");
            assert!(finding["keeps_at"]["function"].is_string(), "{finding}");
        }
        let null = finding(&run, "reads_null")["message"].to_string();
        for (marker, function) in [("passes null", "reads_null"), ("calls the end", "in_the_third")]
        {
            let caller = format!("called from {} (programs::killed::{function}", place(marker));
            assert!(null.contains(&caller), "{caller}: {null}");
        }
        // The second panic ends the process where the first one unwinds, and a stack overflows at
        // the beginning of a function.
        for (test, expected) in
            [("panics_while_it_panics", test_body), ("overflows_its_stack", "killed::descend")]
        {
            let finding = finding(&run, test);
            assert_eq!(first_line(&finding), format!("{ABORT} in iteration 5 of 12"), "{test}");
            let function = finding["keeps_at"]["function"].as_str().expect("a function");
            assert!(function.contains(expected), "{device} {function}");
        }
        // No stack is known, and so only the line that iterates is.
        let killed = finding(&run, "is_killed");
        let message = killed["message"].as_str().unwrap();
        let expected = "SIGKILL (signal 9) ended the process in iteration 5 of 12; 8,3";
        assert!(message.starts_with(expected), "{message}");
        assert!(message.ends_with("were live on the host when that iteration began"), "{message}");
        assert_eq!(at(&killed), place("iterates"));
        assert_eq!(
            (&killed["keeps_at"]["function"], &killed["iterates"]),
            (&Value::Null, &true.into())
        );
        assert!(
            run.stderr.contains(&format!("{} (iterates here)", place("iterates"))),
            "{}",
            run.stderr
        );
        let hint = killed["hint"].as_str().unwrap();
        assert!(hint.contains("`sudo dmesg | grep -i \"out of memory\"`"), "{killed}");
        assert!(hint.starts_with("the line calls the iterations, "), "{killed}");
        for (test, marker, iterates) in [
            ("is_killed_early", "above the function that is killed early", Value::Null),
            ("is_killed_without_a_trial", "above the function without a trial", true.into()),
        ] {
            let finding = finding(&run, test);
            assert_eq!(at(&finding), below(marker), "{device} {test}: {finding}");
            assert_eq!(finding["iterates"], iterates, "{device} {test}");
        }
        let early = format!("{} (the test)", below("above the function that is killed early"));
        assert!(run.stderr.contains(&early), "{}", run.stderr);
        let watches = format!("killed::is_killed --exact --no-capture --device {device}");
        assert!(run.stderr.contains(&watches), "{}", run.stderr);
        let run_text = run.stdout.as_str();
        assert!(!run_text.contains("--no-capture"), "all output is shown");
    }
}

#[test]
fn handlers_of_the_program_are_kept_and_its_children_are_not_the_test() {
    let programs = Programs::of("killed");
    for device in ["cpu", "sim"] {
        let run = programs.run(device, &[]).exits(100);
        for test in ["survives_with_its_handler", "has_a_child_that_aborts", "is_clean"] {
            assert_eq!(run.test(test)["status"], "passed", "{device} {test}");
            assert_eq!(run.codes(test), [""; 0], "{device} {test}");
        }
        let own = finding(&run, "ends_in_its_handler");
        let expected = "the process ended with exit status 9 in iteration 5 of 12";
        assert_eq!(own["message"], expected, "{device}");
        for printed in ["the handler of the program ran", "has overflowed its stack"] {
            assert!(run.stderr.contains(printed), "{device} {}", run.stderr);
        }
        // The stack of the child is not that of its parent.
        let after = finding(&run, "is_ended_after_its_child");
        assert_eq!(after["keeps_at"]["function"], Value::Null, "{device} {after}");
    }
}

#[test]
fn every_form_of_output_has_the_place_and_the_next_step_of_a_crash() {
    let programs = Programs::of("killed");
    let reports = ["--report", "html=out/a.html", "--report", "markdown=out/a.md"];
    let test = ["run", "--device", "cpu", "--no-ci", "killed::reads_null"];
    let run = programs.memcheck(&[&test[..], &reports].concat()).exits(100);
    let place = format!("{}:{}", programs.source(), programs.line("reads"));
    let next = "RUST_BACKTRACE=1 cargo memcheck run -p memcheck-programs --test programs \
                killed::reads_null --exact --no-capture --device cpu";
    let message = format!("{SEGMENTATION} in iteration 5 of 12");
    let markdown = programs.read("out/a.md");
    let page = fs::read_to_string(programs.path().join("out/a.html")).expect("a page");
    for (form, text) in [("terminal", &run.stderr), ("markdown", &markdown), ("html", &page)] {
        for part in [message.as_str(), &place, next, "called from", "look for a wrong pointer"] {
            assert!(text.contains(part), "{form} has no `{part}`:\n{text}");
        }
    }
    let card = page.split_once("class=\"failure failed\"").expect("a card").1;
    let (closed, card) = card.split_once("</summary>").expect("a row that opens");
    assert!(closed.contains(&place) && closed.contains(&message), "{closed}");
    let order = ["class=\"message\"", place.as_str(), "called from", "hint: ", "next: "];
    let found = order.map(|part| card.find(part).unwrap_or_else(|| panic!("{part} in {card}")));
    assert!(found.is_sorted(), "{found:?}");
}

/// A plain `cargo test` has the same lines, and leaves no file.
#[test]
fn a_plain_run_names_the_line_too() {
    let programs = Programs::of("killed");
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let mut plain = programs.cargo_test();
    plain.env("TMPDIR", temporary.path()).args(["--", "killed::aborts", "killed::is_clean"]);
    let output = plain.output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(101), "{text}");
    let at = format!("{}:{} (programs::killed::aborts", programs.source(), programs.line("aborts"));
    for part in [format!("crashed: {ABORT} in iteration 5 of 12"), at] {
        assert!(text.contains(&part), "`{part}` is not in {text}");
    }
    assert!(text.contains("test killed::is_clean ... ok"), "{text}");
    let left: Vec<_> = fs::read_dir(temporary.path()).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}
