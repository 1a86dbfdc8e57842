//! Reactions to signals and limits of the system that the command inherits from the process that
//! starts it. They must not change a result, or end the command without a message.

use std::process::{Command, Output};

use crate::fixture::{Project, Run, command, started_by, workspace};

const ONE: &str = "#[mem_test(baseline = false)]\nfn passes() {}\n";

const RUN: [&str; 6] = ["run", "--device", "cpu", "--no-ci", "--message-format", "json"];

/// Runs a command in a shell after `first`.
fn after(first: &str, own: &Command) -> Output {
    let script = format!("{first}; exec \"$@\"");
    let shell = ("sh", &["-c", script.as_str(), "sh"][..]);
    started_by(shell, own).output().expect("sh runs")
}

fn memcheck_after(first: &str, project: &Project, arguments: &[&str]) -> Run {
    Run::from_output(&after(first, &command(project.path(), arguments)))
}

#[test]
fn a_parent_that_ignores_the_end_of_its_children_does_not_change_a_result() {
    let under = |own: &Command| {
        started_by(("env", &["--ignore-signal=CHLD"]), own).output().expect("env runs")
    };
    let project = Project::new(ONE);
    let run = Run::from_output(&under(&command(project.path(), &RUN))).exits(0);
    assert_eq!(run.test("passes")["status"], "passed");
    // Cargo cannot run under such a parent, but the harness alone can.
    let built = project.cargo_test().arg("--no-run").output().expect("cargo runs");
    let text = String::from_utf8_lossy(&built.stderr).into_owned();
    let executable = text.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let executable = executable.unwrap_or_else(|| panic!("no executable: {text}")).0;
    let mut harness = Command::new(executable);
    harness.arg("passes").current_dir(project.path());
    let output = under(&harness);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_a_message() {
    const NONE: &str = "ulimit -f 0";
    let project = Project::new(ONE);
    // The first run can take minutes. Cargo writes down the use of its cache every five minutes, so
    // that it has nothing to write only directly after another run.
    for _ in 0..2 {
        memcheck_after("true", &project, &RUN).exits(0);
    }
    let run = memcheck_after(NONE, &project, &RUN).exits(100).prints("File too large");
    // The test cannot write its report either.
    run.prints("SIGXFSZ (signal 25) ended the process");
    // A program that the command starts has the system's own reaction.
    project.write("killed", "#!/bin/sh\nkill -XFSZ $$\n");
    let script = project.path().join("killed");
    let set = Command::new("chmod").arg("+x").arg(&script).status();
    assert!(set.is_ok_and(|status| status.success()));
    let mut killed = command(project.path(), &RUN);
    let killed = killed.env("CARGO", &script).output().expect("cargo-memcheck runs");
    let killed = Run::from_output(&killed).exits(102).prints("SIGXFSZ").prints("`ulimit -f`");
    assert_eq!(killed.summary()["exit_code"], 102);
}

#[test]
fn a_limit_on_the_stack_does_not_end_the_command() {
    const SMALL: &str = "ulimit -s 64";
    let explain = command(&workspace(), &["explain", "leak"]);
    let explain = Run::from_output(&after(SMALL, &explain)).exits(0);
    assert!(explain.stdout.contains("leak"), "{}", explain.stdout);
    let project = Project::new(ONE);
    // Cargo, which the command asks in every run, overflows its own stack.
    memcheck_after(SMALL, &project, &RUN).exits(102).prints("`ulimit -s`");
}
