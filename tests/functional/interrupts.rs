//! A signal must leave all results that were measured by then, and a stream that is closed once.

use crate::fixture::{
    Programs, Project, interrupt, is_running, memcheck_signaled, signaled, started_by,
};

const JSON: [&str; 5] = ["--device", "cpu", "--message-format", "json", "--no-ci"];

fn programs() -> Programs {
    Programs::of("interrupts")
}

#[test]
fn an_interrupt_of_the_explanation_keeps_the_verdict() {
    let programs = programs();
    let arguments = [&["run", "interrupts::leaky"][..], &JSON].concat();
    let run = programs.interrupted(&arguments, "third").exits(130);
    assert_eq!(run.codes("leaky"), ["leak"]);
    let summary = run.summary();
    assert_eq!((&summary["failed"], &summary["interrupted"]), (&1.into(), &true.into()));
    assert!(!is_running(&programs.read("third")), "the third run still runs");
}

#[test]
fn a_signal_ends_the_build_which_is_not_reported_as_a_failed_one() {
    let project = Project::new("");
    project.write(
        "build.rs",
        "fn main() {
    std::fs::write(\"building\", \"\").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
    std::fs::write(\"built\", \"\").unwrap();
}
",
    );
    let run = ["run"];
    for (command, signal) in
        [(&run[..], interrupt()), (&["profile", "a"], interrupt()), (&run, "-TERM")]
    {
        let arguments = [command, &JSON[..4]].concat();
        let run = memcheck_signaled(project.path(), &arguments, "building", signal).exits(130);
        let summary = run.summary();
        assert_eq!((&summary["interrupted"], &summary["exit_code"]), (&true.into(), &130.into()));
        assert!(!project.has("built"), "the command waited for the build");
        std::fs::remove_file(project.path().join("building")).unwrap();
    }
}

#[test]
fn an_interrupted_search_prints_one_summary() {
    let programs = programs();
    let arguments = ["fit", "interrupts::waits", "--param", "batch", "--device", "sim"];
    let arguments = [&arguments[..], &["--message-format", "json"]].concat();
    let run = programs.interrupted(&arguments, "waiting").exits(130);
    let summaries = run.json().iter().filter(|line| line["type"] == "summary").count();
    assert_eq!(summaries, 1, "{}", run.stdout);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_remains_ignored() {
    let programs = programs();
    let command = programs.command(&[&["run", "interrupts::goes_on"][..], &JSON].concat());
    // Ignores SIGHUP, as `nohup` does.
    let shell = ("sh", &["-c", "trap '' HUP; exec \"$@\"", "sh"][..]);
    let file = programs.path().join("running");
    let run = signaled(started_by(shell, &command), &file, "-HUP");
    assert_eq!(run.exits(0).test("goes_on")["status"], "passed");
}
