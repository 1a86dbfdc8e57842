//! Folders on a read-only file system (EROFS). A command whose output cannot be written there must
//! not succeed, must state the folder, and must leave the old file.

use std::process::Command;

use crate::fixture::{Programs, Run, target};

/// Mounts its first argument read-only, for the command that the other arguments are.
const SCRIPT: &str = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || exit 99
    shift
    exec \"$@\"";

/// The command, which runs a test that allocates `bytes`.
fn command(programs: &Programs, arguments: &[&str], bytes: &str) -> Command {
    let mut command = programs.command(arguments);
    command.env("ALLOCATED_BYTES", bytes);
    command
}

fn run(programs: &Programs, arguments: &[&str], bytes: &str) -> Run {
    let output = command(programs, arguments, bytes).output();
    Run::from_output(&output.expect("cargo-memcheck runs"))
}

/// Runs the command in a mount namespace in which `folder` is read-only. `None` if this machine
/// refuses the namespace or the mount.
fn with_read_only(folder: &str, own: &Command) -> Option<Run> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", SCRIPT, "sh", folder]);
    command.arg(own.get_program()).args(own.get_args());
    command.current_dir(own.get_current_dir().expect("the folder of the programs"));
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().ok()?;
    let run = Run::from_output(&output);
    (run.code != 99 && !run.stderr.starts_with("unshare: ")).then_some(run)
}

#[test]
#[ignore = "slow: just all"]
fn a_read_only_folder_is_an_error_and_its_files_stay() {
    let programs = Programs::of("read_only").with_baselines();
    let test = ["run", "read_only::allocates", "--device", "cpu", "--no-ci"];
    run(&programs, &test, "50000").exits(0);
    programs.memcheck(&["accept"]).exits(0);
    let snapshot = programs.baseline("allocates@cpu");
    let accepted = programs.read(&snapshot);
    assert!(accepted.contains("peak_allocated: 50000"), "{accepted}");

    // Figures that differ from the baseline, and the pending snapshot of them.
    run(&programs, &test, "20000").exits(0);
    let pending = programs.pending("allocates@cpu");
    assert!(programs.read(&pending).contains("peak_allocated: 20000"));

    for file in ["junit.xml", "history.jsonl", "results.jsonl", "tests.tar"] {
        programs.write(&format!("kept/{file}"), "old\n");
    }
    let of_tool = target().join("memcheck").display().to_string();
    let snapshots = "baselines/tests/programs/snapshots";
    let with = |more: &[&'static str]| [&test[..], more].concat();
    let cases: [(&str, Vec<&str>); 6] = [
        (snapshots, vec!["accept"]),
        ("kept", with(&["--report", "junit=kept/junit.xml"])),
        ("kept", with(&["--results", "kept"])),
        ("kept", with(&["--history", "kept/history.jsonl"])),
        ("kept", vec!["archive", "--device", "cpu", "--archive-file", "kept/tests.tar"]),
        (&of_tool, test.to_vec()),
    ];
    for (folder, arguments) in cases {
        let refused = command(&programs, &arguments, "20000");
        let Some(refused) = with_read_only(folder, &refused) else {
            return println!("skipped: this machine does not allow a folder to be mounted");
        };
        assert!(refused.code > 0, "{arguments:?}: {}\n{}", refused.code, refused.stderr);
        let text = refused.stderr.to_lowercase();
        assert!(text.contains("read-only file system"), "{arguments:?}: {}", refused.stderr);
        for file in ["junit.xml", "history.jsonl", "results.jsonl", "tests.tar"] {
            assert_eq!(programs.read(&format!("kept/{file}")), "old\n", "{arguments:?}");
        }
        assert_eq!(programs.read(&snapshot), accepted, "{arguments:?}");
        assert!(programs.has(&pending), "{arguments:?}");
    }

    // A test whose pending snapshot cannot be written has not been measured as it should be.
    let other = command(&programs, &test, "10000");
    let refused = with_read_only(snapshots, &other).expect("a namespace");
    assert!(refused.code > 0, "{}", refused.stderr);
    assert_eq!(programs.read(&snapshot), accepted);
    assert!(programs.read(&pending).contains("peak_allocated: 20000"));
}
