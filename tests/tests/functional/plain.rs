//! A plain `cargo test`, without the command: of a memory test that hangs, or
//! whose harness is killed, nothing is left running.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{Project, is_running};

/// A test that starts a child, says so in the file `ids`, and hangs.
fn hangs(timeout: &str) -> Project {
    Project::new(&format!(
        "
#[mem_test(baseline = false, timeout = \"{timeout}\")]
fn hangs() {{
    let child = std::process::Command::new(\"sleep\").arg(\"600\").spawn().unwrap();
    std::fs::write(\"unfinished\", format!(\"{{}} {{}}\", std::process::id(), child.id())).unwrap();
    std::fs::rename(\"unfinished\", \"ids\").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}}
"
    ))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(300);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_time_out_ends_what_the_test_started() {
    let project = hangs("2s");
    let output = project.cargo_test().output().expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert!(said.contains("timed-out: the test took longer"), "{said}");
    for id in project.read("ids").split(' ') {
        // Killed, it may still be on its way out.
        let patience = Instant::now() + Duration::from_secs(10);
        while is_running(id) {
            assert!(Instant::now() < patience, "{id} still runs");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Who gets a signal.
enum Whom {
    /// Cargo's process group.
    Group,
    /// The process of the test harness.
    Harness,
}

fn parent(id: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.expect("every process has a parent").trim().to_owned()
}

#[test]
fn a_killed_harness_leaves_nothing_behind() {
    let project = hangs("10m");
    // As Ctrl-C ends it, as a time-out of nextest's, and alone.
    for (signal, whom) in [("-INT", Whom::Group), ("-KILL", Whom::Group), ("-KILL", Whom::Harness)]
    {
        let mut command = project.cargo_test();
        let mut cargo = command
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("cargo starts");
        wait_until("the test starts", || project.has("ids"));
        let ids = project.read("ids");
        assert!(ids.split(' ').all(is_running), "{ids}");
        let whom = match whom {
            Whom::Group => format!("-{}", cargo.id()),
            Whom::Harness => parent(ids.split(' ').next().expect("the test's own")),
        };
        let sent = Command::new("kill").args([signal, "--", &whom]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal is sent");
        cargo.wait().expect("cargo ends");
        wait_until("the test ends with its harness", || !ids.split(' ').any(is_running));
        std::fs::remove_file(project.path().join("ids")).expect("the file is there");
    }
}
