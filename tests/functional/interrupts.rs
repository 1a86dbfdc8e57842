//! A signal must leave all results that were measured by then, and a stream that is closed once.

use crate::fixture::{
    Project, is_running, memcheck_interrupted, memcheck_signaled, memcheck_signaled_by,
};

const JSON: [&str; 5] = ["--device", "cpu", "--message-format", "json", "--no-ci"];

#[test]
fn an_interrupt_of_the_explanation_keeps_the_verdict() {
    let project = Project::new(
        "#[mem_test(max_growth = \"0 B\", baseline = false)]
fn leaky(trial: &mut Trial) {
    let mut kept = Vec::new();
    trial.iterate(|_| { kept.push(vec![0u8; 4096]); Ok::<_, String>(()) }).unwrap();
    // The first run measures, the second decides, and the third waits to be ended.
    let runs = std::fs::read_to_string(\"runs\").unwrap_or_default();
    if runs.len() == 2 {
        std::fs::write(\"third\", std::process::id().to_string()).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
    std::fs::write(\"runs\", runs + \".\").unwrap();
}
",
    );
    let run = memcheck_interrupted(project.path(), &[&["run"][..], &JSON].concat(), "third");
    let run = run.exits(130);
    assert_eq!(run.codes("leaky"), ["leak"]);
    let summary = run.summary();
    assert_eq!((&summary["failed"], &summary["interrupted"]), (&1.into(), &true.into()));
    assert!(!is_running(&project.read("third")), "the third run still runs");
}

#[test]
fn a_build_ends_when_the_command_receives_sigterm() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn a() {}\n");
    project.write(
        "build.rs",
        "fn main() {
    std::fs::write(\"building\", \"\").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
    std::fs::write(\"built\", \"\").unwrap();
}
",
    );
    let arguments = [&["run"][..], &JSON].concat();
    let run = memcheck_signaled(project.path(), &arguments, "building", "-TERM").exits(130);
    assert_eq!(run.summary()["interrupted"], true);
    assert!(!project.has("built"), "the command waited for the build");
}

#[test]
fn an_interrupted_search_prints_one_summary() {
    let project = Project::new(
        "#[mem_test(cases(batch = [1]), baseline = false)]
fn waits(_trial: &mut Trial) {
    std::fs::write(\"waiting\", \"\").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}
",
    );
    let arguments = ["fit", "waits", "--param", "batch", "--device", "sim"];
    let arguments = [&arguments[..], &["--message-format", "json"]].concat();
    let run = memcheck_interrupted(project.path(), &arguments, "waiting").exits(130);
    let summaries = run.json().iter().filter(|line| line["type"] == "summary").count();
    assert_eq!(summaries, 1, "{}", run.stdout);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_remains_ignored() {
    let project = Project::new(
        "#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn goes_on() {
    std::fs::write(\"running\", \"\").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
}
",
    );
    let arguments = [&["run"][..], &JSON].concat();
    // Ignores SIGHUP, as `nohup` does.
    let shell = ("sh", &["-c", "trap '' HUP; exec \"$@\"", "sh"][..]);
    let run = memcheck_signaled_by(shell, project.path(), &arguments, "running", "-HUP");
    assert_eq!(run.exits(0).test("goes_on")["status"], "passed");
}
