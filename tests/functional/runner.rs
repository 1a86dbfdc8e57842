//! `--runner`: a launcher starts the test processes. A shell script replaces it and behaves as
//! launchers do: it passes the command on, closes descriptors, fails, cancels its job, or changes
//! the folder.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::fixture::{Programs, Run, is_running};

const RUNNER: [&str; 2] = ["--runner", "./launch --gres='gpu:1 a'"];

/// The two tests of most launchers.
const USUAL: [&str; 2] = ["runner::clean", "runner::leaky"];

/// Programs with a launcher, `launch`, that runs this script.
fn programs(script: &str) -> Programs {
    let programs = Programs::of("runner");
    set_launcher(&programs, script);
    programs
}

/// In the script, `$folder` is the folder of the launcher.
fn set_launcher(programs: &Programs, script: &str) {
    let script =
        format!("#!/bin/sh\nfolder=${{0%/*}}\necho \"$@\" >> \"$folder/launched\"\n{script}\n");
    programs.write("launch", &script);
    std::fs::set_permissions(programs.path().join("launch"), PermissionsExt::from_mode(0o755))
        .expect("the program is executable");
}

fn launch(programs: &Programs, arguments: &[&str]) -> Run {
    programs.run("cpu", &[&RUNNER, arguments].concat())
}

fn launch_usual(programs: &Programs, arguments: &[&str]) -> Run {
    launch(programs, &[&USUAL, arguments].concat())
}

#[track_caller]
fn assert_usual_figures(run: &Run) {
    let finding = &run.test("leaky")["findings"][0];
    assert_eq!(finding["code"], "leak");
    assert_eq!(finding["bytes_per_iteration"], 4096);
    assert_eq!(run.test("clean")["status"], "passed");
}

#[test]
fn a_launcher_that_passes_the_command_on_does_not_change_the_figures() {
    let programs = programs("shift\nexec \"$@\"");
    assert_usual_figures(&launch_usual(&programs, &["--explain", "never"]).exits(100));
    let launched = programs.read("launched");
    let lines: Vec<&str> = launched.lines().collect();
    assert_eq!(
        lines.len(),
        3,
        "expected a process for each test, and one that decides: {launched}"
    );
    assert!(lines[0].starts_with("--gres=gpu:1 a /"), "{launched}");
    assert!(
        lines[0].ends_with(" runner::clean --exact --nocapture --test-threads=1"),
        "{launched}"
    );
    // The launcher must start tests only, and neither the build nor the listing.
    let direct = programs.run("cpu", &[&USUAL[..], &["--explain", "never"]].concat()).exits(100);
    assert_eq!(direct.exact_metrics("leaky"), launch_usual(&programs, &[]).exact_metrics("leaky"));
}

#[test]
fn a_launcher_may_close_descriptors_change_the_folder_and_print() {
    let programs =
        programs("shift\necho job 1 queued; echo job 1 starts >&2\ncd /\n\"$@\" 3>&- 4>&- 5>&-");
    assert_usual_figures(&launch_usual(&programs, &[]).exits(100));
}

#[test]
fn the_exit_code_of_a_launcher_is_ignored_if_the_test_has_a_report() {
    let programs = programs("shift\n\"$@\"\nexit 7");
    let run = launch_usual(&programs, &["--explain", "never"]).exits(100);
    assert_usual_figures(&run);
    assert_eq!(run.summary()["not_measured"], 0);
    set_launcher(&programs, "shift\n\"$@\"\nexit 0");
    assert_eq!(launch(&programs, &["runner::leaky"]).exits(100).codes("leaky")[0], "leak");
}

#[test]
fn a_test_is_not_measured_if_its_launcher_fails_or_is_missing() {
    let programs = programs("echo no node is free >&2\nexit 3");
    let run = launch_usual(&programs, &["--report", "junit=junit.xml"]).exits(104);
    for test in ["clean", "leaky"] {
        assert_eq!(run.codes(test), ["not-measured"]);
    }
    let finding = &run.test("clean")["findings"][0];
    let (message, hint) = (finding["message"].as_str().unwrap(), finding["hint"].as_str().unwrap());
    assert!(message.contains("the launcher ended with exit status 3"), "{message}");
    assert!(hint.contains("/launch '--gres=gpu:1 a' /"), "{hint}");
    assert!(hint.ends_with(" runner::clean --exact --nocapture '--test-threads=1'"), "{hint}");
    assert!(
        programs.read("junit.xml").contains("no node is free"),
        "the output of the launcher is not in the report"
    );

    let missing = ["--runner", "/no/such/srun --gres=gpu:1", "runner::clean"];
    let missing = programs.run("cpu", &missing).exits(104);
    assert_eq!(missing.codes("clean"), ["not-measured"]);
    let hint = missing.test("clean")["findings"][0]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("/no/such/srun '--gres=gpu:1' /"), "{hint}");

    set_launcher(&programs, "shift\nexec env -i \"$@\"");
    let cleaned = launch(&programs, &["runner::clean"]).exits(104);
    let hint = cleaned.test("clean")["findings"][0]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("environment (MEMCHECK_JOB)"), "{hint}");
}

#[test]
fn a_test_that_dies_behind_a_launcher_has_crashed() {
    let programs = programs("");
    // One launcher is replaced by the test, and one reports its signal as a shell does.
    for script in ["shift\nexec \"$@\"", "shift\n\"$@\""] {
        set_launcher(&programs, script);
        let run = launch(&programs, &["runner::dies"]).exits(100);
        assert_eq!(run.codes("dies"), ["crashed"]);
        let message = run.test("dies")["findings"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("SIGABRT (signal 6)"), "{script}: {message}");
    }
}

/// A launcher that runs its job in another session, which a signal to its own group does not reach.
const CANCELS: &str = "shift\nsetsid \"$@\" & job=$!\n\
                       trap 'kill $job; echo canceled > \"$folder/canceled\"; exit 1' TERM\nwait";

#[test]
fn a_launcher_receives_sigterm_at_a_time_out() {
    let programs = programs(CANCELS);
    let run = launch(&programs, &["runner::hangs"]).exits(100);
    assert_eq!(run.codes("hangs"), ["timed-out"]);
    assert_eq!(programs.read("canceled"), "canceled\n");
    assert!(!is_running(&programs.read("test")), "the test still runs");
}

#[test]
fn a_launcher_receives_sigterm_on_an_interrupt() {
    let programs = programs(CANCELS);
    let arguments = ["run", "runner::waits_long", "--device", "cpu", "--message-format", "json"];
    let arguments = [&arguments[..], &["--no-ci", "--runner", "./launch x"]].concat();
    let run = programs.interrupted(&arguments, "test").exits(130);
    assert_eq!(run.summary()["interrupted"], true);
    assert_eq!(programs.read("canceled"), "canceled\n");
    assert!(!is_running(&programs.read("test")), "the test still runs");
}

#[test]
#[ignore = "slow: just all"]
fn a_launcher_that_ignores_sigterm_is_killed() {
    let script = "shift\necho $$ > \"$folder/id\"\ntrap '' TERM\n\"$@\"\nsleep 600";
    let programs = programs(script);
    programs.memcheck(&["list", "--device", "cpu"]).exits(0);
    let started = Instant::now();
    let run = launch(&programs, &["runner::hangs"]).exits(100);
    assert_eq!(run.codes("hangs"), ["timed-out"]);
    assert!(started.elapsed() > Duration::from_secs(10), "the launcher was killed too early");
    for id in ["id", "test"] {
        assert!(!is_running(&programs.read(id)), "{id} still runs");
    }
}

#[test]
fn the_wait_in_a_queue_does_not_count_toward_the_time_out() {
    let programs = programs("shift\nsleep 4\nexec \"$@\"");
    let run = launch(&programs, &["runner::quick"]).exits(0);
    assert_eq!(run.test("quick")["status"], "passed");
}

#[test]
fn test_threads_limits_the_tests_that_are_launched_at_once() {
    // Each launcher records the number of launchers that run.
    let script = "shift\ncount() { ls \"$folder\"/on.* | wc -l; }\ntouch \"$folder/on.$$\"\n\
                  count >> \"$folder/at-once\"\n\"$@\"\nrm \"$folder/on.$$\"";
    let programs = programs(script);
    let highest = || {
        let counts = programs.read("at-once");
        counts.lines().filter_map(|line| line.trim().parse::<u32>().ok()).max()
    };
    launch(&programs, &["runner::sleeps", "--explain", "never"]).exits(0);
    assert_eq!(highest(), Some(1));
    launch(&programs, &["runner::sleeps", "--explain", "never", "--test-threads", "4"]).exits(0);
    assert_eq!(highest(), Some(4));
}

#[test]
fn a_runner_can_be_a_variable_or_in_the_configuration_and_is_read_before_a_build() {
    let programs = programs("shift\nexec \"$@\"");
    let arguments = ["run", "--device", "cpu", "--no-ci", "runner::clean"];
    let launched = || programs.read("launched").lines().count();
    programs.memcheck_with(&arguments, &[("MEMCHECK_RUNNER", "./launch x")]).exits(0);
    let before = launched();
    assert!(before > 0);
    // A path in the configuration is relative to the workspace.
    let launcher = programs.path().join("launch").display().to_string();
    programs.configure(&format!("runner = \"{launcher} y\"\n"));
    programs.memcheck(&arguments).exits(0);
    assert!(launched() > before);
    let before = launched();
    programs.memcheck(&[&arguments[..], &["--runner", ""]].concat()).exits(0);
    assert_eq!(launched(), before);
    programs.run("cpu", &["--runner", "srun 'a"]).exits(2).prints("--runner");
    let variable = [("MEMCHECK_RUNNER", "'")];
    programs.memcheck_with(&arguments, &variable).exits(2).prints("MEMCHECK_RUNNER");
    programs.configure("runner = \"'\"\n");
    let refused = programs.run("cpu", &[]).exits(96).prints("1 | runner =");
    refused.prints("a quote or a backslash is left open");
}
