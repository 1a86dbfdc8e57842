//! `--runner`: a launcher starts the test processes. A shell script replaces it and behaves as
//! launchers do: it passes the command on, closes descriptors, fails, cancels its job, or changes
//! the folder.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::fixture::{CLEAN_AND_LEAKY, Project, Run, is_running, memcheck_with};

/// A project with a launcher, `launch`, that runs this script.
fn project(tests: &str, script: &str) -> Project {
    let project = Project::new(tests);
    launcher(&project, script);
    project
}

fn launcher(project: &Project, script: &str) {
    project.write("launch", &format!("#!/bin/sh\necho \"$@\" >> launched\n{script}\n"));
    let path = project.path().join("launch");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))
        .expect("the program is executable");
}

fn launch(project: &Project, arguments: &[&str]) -> Run {
    let mut all = vec!["--runner", "./launch --gres='gpu:1 a'"];
    all.extend(arguments);
    project.run(&all)
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
    let project = project(CLEAN_AND_LEAKY, "shift\nexec \"$@\"");
    assert_usual_figures(&launch(&project, &["--explain", "never"]).exits(100));
    let launched = project.read("launched");
    let lines: Vec<&str> = launched.lines().collect();
    assert_eq!(
        lines.len(),
        3,
        "expected a process for each test, and one that decides: {launched}"
    );
    assert!(lines[0].starts_with("--gres=gpu:1 a /"), "{launched}");
    assert!(lines[0].ends_with(" clean --exact --nocapture --test-threads=1"), "{launched}");
    // The launcher must start tests only, and neither the build nor the listing.
    let direct = project.run(&["--explain", "never"]).exits(100);
    assert_eq!(direct.exact_metrics("leaky"), launch(&project, &[]).exact_metrics("leaky"));
}

#[test]
fn a_launcher_may_close_descriptors_change_the_folder_and_print() {
    let project = project(
        CLEAN_AND_LEAKY,
        "shift\necho job 1 queued; echo job 1 starts >&2\ncd /\n\"$@\" 3>&- 4>&- 5>&-",
    );
    assert_usual_figures(&launch(&project, &[]).exits(100));
}

#[test]
fn the_exit_code_of_a_launcher_is_ignored_if_the_test_has_a_report() {
    let project = project(CLEAN_AND_LEAKY, "shift\n\"$@\"\nexit 7");
    let run = launch(&project, &["--explain", "never"]).exits(100);
    assert_usual_figures(&run);
    assert_eq!(run.summary()["not_measured"], 0);
    launcher(&project, "shift\n\"$@\"\nexit 0");
    assert_eq!(launch(&project, &["leaky"]).exits(100).codes("leaky")[0], "leak");
}

#[test]
fn a_test_is_not_measured_if_its_launcher_fails_or_is_missing() {
    let project = project(CLEAN_AND_LEAKY, "echo no node is free >&2\nexit 3");
    let run = launch(&project, &["--report", "junit=junit.xml"]).exits(104);
    for test in ["clean", "leaky"] {
        assert_eq!(run.codes(test), ["not-measured"]);
    }
    let finding = &run.test("clean")["findings"][0];
    let (message, hint) = (finding["message"].as_str().unwrap(), finding["hint"].as_str().unwrap());
    assert!(message.contains("the launcher ended with exit status 3"), "{message}");
    assert!(hint.contains("/launch '--gres=gpu:1 a' /"), "{hint}");
    assert!(hint.ends_with(" clean --exact --nocapture '--test-threads=1'"), "{hint}");
    assert!(
        project.read("junit.xml").contains("no node is free"),
        "the output of the launcher is not in the report"
    );

    let missing = project.run(&["--runner", "/no/such/srun --gres=gpu:1", "clean"]).exits(104);
    assert_eq!(missing.codes("clean"), ["not-measured"]);
    let hint = missing.test("clean")["findings"][0]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("/no/such/srun '--gres=gpu:1' /"), "{hint}");

    launcher(&project, "shift\nexec env -i \"$@\"");
    let cleaned = launch(&project, &["clean"]).exits(104);
    let hint = cleaned.test("clean")["findings"][0]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("environment (MEMCHECK_JOB)"), "{hint}");
}

/// One test that dies and one that hangs.
const ROGUES: &str = "
#[mem_test(baseline = false)]
fn dies() {
    std::process::abort();
}
#[mem_test(baseline = false, timeout = \"2s\")]
fn hangs() {
    std::fs::write(\"test\", std::process::id().to_string()).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}
";

#[test]
fn a_test_that_dies_behind_a_launcher_has_crashed() {
    let project = project(ROGUES, "shift\nexec \"$@\"");
    // One launcher is replaced by the test, and one reports its signal as a shell does.
    for script in ["shift\nexec \"$@\"", "shift\n\"$@\""] {
        launcher(&project, script);
        let run = launch(&project, &["dies"]).exits(100);
        assert_eq!(run.codes("dies"), ["crashed"]);
        let message = run.test("dies")["findings"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("SIGABRT (signal 6)"), "{script}: {message}");
    }
}

/// A launcher that runs its job in another session, which a signal to its own group does not reach.
const CANCELS: &str =
    "shift\nsetsid \"$@\" & job=$!\ntrap 'kill $job; echo canceled > canceled; exit 1' TERM\nwait";

#[test]
fn a_launcher_receives_sigterm_at_a_time_out() {
    let project = project(ROGUES, CANCELS);
    let run = launch(&project, &["hangs"]).exits(100);
    assert_eq!(run.codes("hangs"), ["timed-out"]);
    assert_eq!(project.read("canceled"), "canceled\n");
    assert!(!is_running(&project.read("test")), "the test still runs");
}

#[test]
fn a_launcher_receives_sigterm_on_an_interrupt() {
    let project = project(&ROGUES.replace("2s", "10m"), CANCELS);
    let arguments = ["run", "--device", "cpu", "--message-format", "json", "--no-ci", "hangs"];
    let arguments = [&arguments[..], &["--runner", "./launch x"]].concat();
    let run = crate::fixture::memcheck_interrupted(project.path(), &arguments, "test").exits(130);
    assert_eq!(run.summary()["interrupted"], true);
    assert_eq!(project.read("canceled"), "canceled\n");
    assert!(!is_running(&project.read("test")), "the test still runs");
}

#[test]
fn a_launcher_that_ignores_sigterm_is_killed() {
    let project = project(ROGUES, "shift\necho $$ > id\ntrap '' TERM\n\"$@\"\nsleep 600");
    project.memcheck(&["list", "--device", "cpu"]).exits(0);
    let started = Instant::now();
    let run = launch(&project, &["hangs"]).exits(100);
    assert_eq!(run.codes("hangs"), ["timed-out"]);
    assert!(started.elapsed() > Duration::from_secs(10), "the launcher was killed too early");
    for id in ["id", "test"] {
        assert!(!is_running(&project.read(id)), "{id} still runs");
    }
}

#[test]
fn the_wait_in_a_queue_does_not_count_toward_the_time_out() {
    let tests = "#[mem_test(baseline = false, timeout = \"2s\")]\nfn quick() {}\n";
    let project = project(tests, "shift\nsleep 4\nexec \"$@\"");
    let run = launch(&project, &[]).exits(0);
    assert_eq!(run.test("quick")["status"], "passed");
}

#[test]
fn test_threads_limits_the_tests_that_are_launched_at_once() {
    let tests: String = (0..4)
        .map(|n| {
            format!(
                "#[mem_test(baseline = false, iterations = 1, warmup = 0)]\nfn t{n}() {{ \
                 std::thread::sleep(std::time::Duration::from_millis(700)); }}\n"
            )
        })
        .collect();
    // Each launcher records the number of launchers that run.
    let script = "shift\ntouch on.$$\nls on.* | wc -l >> at-once\n\"$@\"\nrm on.$$";
    let project = project(&tests, script);
    let highest = || {
        let counts = project.read("at-once");
        counts.lines().filter_map(|line| line.trim().parse::<u32>().ok()).max()
    };
    launch(&project, &["--explain", "never"]).exits(0);
    assert_eq!(highest(), Some(1));
    launch(&project, &["--explain", "never", "--test-threads", "4"]).exits(0);
    assert_eq!(highest(), Some(4));
}

#[test]
fn a_runner_can_be_a_variable_or_in_the_configuration_and_is_read_before_a_build() {
    let project = project(CLEAN_AND_LEAKY, "shift\nexec \"$@\"");
    let arguments = ["run", "--device", "cpu", "--no-ci", "clean"];
    let launched = || project.read("launched").lines().count();
    memcheck_with(project.path(), &arguments, &[("MEMCHECK_RUNNER", "./launch x")]).exits(0);
    let before = launched();
    assert!(before > 0);
    project.write(".config/memcheck.toml", "runner = \"./launch y\"\n");
    project.memcheck(&arguments).exits(0);
    assert!(launched() > before);
    let before = launched();
    project.memcheck(&[&arguments[..], &["--runner", ""]].concat()).exits(0);
    assert_eq!(launched(), before);
    project.run(&["--runner", "srun 'a"]).exits(2).prints("--runner");
    memcheck_with(project.path(), &arguments, &[("MEMCHECK_RUNNER", "'")])
        .exits(2)
        .prints("MEMCHECK_RUNNER");
    project.write(".config/memcheck.toml", "runner = \"'\"\n");
    project.run(&[]).exits(96).prints("1 | runner =").prints("a quote or a backslash is left open");
}
