//! Tests that are killed because they take too long: every form of output has the line at which the
//! body was, the lines that called it, and the next step.

use std::fs;

use serde_json::Value;

use crate::fixture::{Programs, Run};

const LATE: &str = "the test was still running after 3s (`timeout = \"3s\"` in its attribute), in iteration 5 of 12";

fn finding(run: &Run, test: &str) -> Value {
    assert_eq!(run.codes(test), ["timed-out"], "{test}");
    run.test(test)["findings"][0].clone()
}

fn place(programs: &Programs, marker: &str) -> String {
    format!("{}:{}", programs.source(), programs.line(marker))
}

#[test]
fn a_test_that_takes_too_long_has_the_line_at_which_it_was() {
    let programs = Programs::of("late");
    let place = |marker| place(&programs, marker);
    let reports = ["-j", "6", "--report", "html=out/a.html", "--report", "markdown=out/a.md"];
    let run = programs.run("cpu", &reports).exits(100);
    let at = |finding: &Value| {
        let at = &finding["keeps_at"];
        format!("{}:{}", at["file"].as_str().unwrap_or_default(), at["line"])
    };
    for (test, marker, callers) in [
        ("sleeps", "sleeps", &["calls the sleep", "calls the end"][..]),
        ("waits_for_its_own_lock", "locks again", &["calls the end"]),
        ("iterates_on_a_thread", "loops", &["calls the end"]),
        ("sleeps_after_a_signal", "sleeps", &["calls the end"]),
    ] {
        let finding = finding(&run, test);
        let message = finding["message"].as_str().expect("a message");
        assert_eq!(message.lines().next(), Some(LATE), "{test}");
        assert_eq!(at(&finding), place(marker), "{test}: {finding}");
        for caller in callers {
            let caller = format!("called from {} (programs::late::", place(caller));
            assert!(message.contains(&caller), "{test} has no {caller}: {message}");
        }
    }
    // No stack is known, and so no line is claimed.
    let deaf = finding(&run, "is_deaf");
    assert_eq!(deaf["message"], LATE);
    assert_eq!((at(&deaf), &deaf["keeps_at"]["function"]), (place("iterates"), &Value::Null));
    assert_eq!(run.test("survives_the_signal")["status"], "passed");

    let next = "cargo memcheck run -p memcheck-programs --test programs late::sleeps --exact \
                --no-capture --device cpu";
    let markdown = programs.read("out/a.md");
    let page = fs::read_to_string(programs.path().join("out/a.html")).expect("a page");
    let sleeps = place("sleeps");
    for (form, text) in [("terminal", &run.stderr), ("markdown", &markdown), ("html", &page)] {
        // The page has elements around the setting.
        let late = if form == "html" { "the test was still running after 3s" } else { LATE };
        for part in [late, &sleeps, next, "called from", "a loop or a wait"] {
            assert!(text.contains(part), "{form} has no `{part}`:\n{text}");
        }
    }
}

/// A plain `cargo test` asks for the stack too.
#[test]
fn a_plain_run_names_the_line_of_a_test_that_takes_too_long() {
    let programs = Programs::of("late");
    let mut plain = programs.cargo_test();
    plain.args(["--", "late::sleeps", "--exact"]);
    let output = plain.output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(101), "{text}");
    for part in [LATE, &place(&programs, "sleeps")] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}
