//! Folders on a read-only file system (EROFS). A command whose output cannot be written there must
//! not succeed, must state the folder, and must leave the old file.

use std::path::PathBuf;
use std::process::Command;

use crate::fixture::{Project, Run, command};

const TESTS: &str = "
#[mem_test]
fn allocates() {
    drop(std::hint::black_box(vec![1_u8; 50_000]));
}
";

/// Mounts its first argument read-only, for the command that the other arguments are.
const SCRIPT: &str = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || exit 99
    shift
    exec \"$@\"";

/// Runs the command in a mount namespace in which `folder` is read-only. `None` if this machine
/// refuses the namespace or the mount.
fn with_read_only(project: &Project, folder: &str, arguments: &[&str]) -> Option<Run> {
    let own = command(project.path(), arguments);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", SCRIPT, "sh", folder]);
    command.arg(own.get_program()).args(own.get_args()).current_dir(project.path());
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
fn a_read_only_folder_is_an_error_and_its_files_stay() {
    let project = Project::new(TESTS);
    let run = ["run", "--device", "cpu", "--no-ci"];
    project.memcheck(&run).exits(0);
    project.memcheck(&["accept"]).exits(0);
    let snapshot = "tests/snapshots/mem__allocates@cpu.snap";
    let accepted = project.read(snapshot);
    assert!(accepted.contains("peak_allocated: 50000"), "{accepted}");

    // Figures that differ from the baseline, and the pending snapshot of them.
    project.write("tests/mem.rs", &project.read("tests/mem.rs").replace("50_000", "20_000"));
    project.memcheck(&run).exits(0);
    let pending = format!("{snapshot}.new");
    assert!(project.read(&pending).contains("peak_allocated: 20000"));

    for file in ["junit.xml", "history.jsonl", "results.jsonl", "tests.tar"] {
        project.write(&format!("kept/{file}"), "old\n");
    }
    let own = command(project.path(), &[]);
    let target = own.get_envs().find(|(name, _)| *name == "CARGO_TARGET_DIR");
    let target = PathBuf::from(target.and_then(|(_, value)| value).expect("a target directory"));
    let of_tool = target.join("memcheck").display().to_string();
    let with = |more: &[&'static str]| [&run[..], more].concat();
    let cases: [(&str, Vec<&str>); 6] = [
        ("tests/snapshots", vec!["accept"]),
        ("kept", with(&["--report", "junit=kept/junit.xml"])),
        ("kept", with(&["--results", "kept"])),
        ("kept", with(&["--history", "kept/history.jsonl"])),
        ("kept", vec!["archive", "--device", "cpu", "--archive-file", "kept/tests.tar"]),
        (&of_tool, run.to_vec()),
    ];
    for (folder, arguments) in cases {
        let Some(refused) = with_read_only(&project, folder, &arguments) else {
            return println!("skipped: this machine does not allow a folder to be mounted");
        };
        assert!(refused.code > 0, "{arguments:?}: {}\n{}", refused.code, refused.stderr);
        let text = refused.stderr.to_lowercase();
        assert!(text.contains("read-only file system"), "{arguments:?}: {}", refused.stderr);
        for file in ["junit.xml", "history.jsonl", "results.jsonl", "tests.tar"] {
            assert_eq!(project.read(&format!("kept/{file}")), "old\n", "{arguments:?}");
        }
        assert_eq!(project.read(snapshot), accepted, "{arguments:?}");
        assert!(project.has(&pending), "{arguments:?}");
    }

    // A test whose pending snapshot cannot be written has not been measured as it should be.
    project.write("tests/mem.rs", &project.read("tests/mem.rs").replace("20_000", "10_000"));
    let refused = with_read_only(&project, "tests/snapshots", &run).expect("a namespace");
    assert!(refused.code > 0, "{}", refused.stderr);
    assert_eq!(project.read(snapshot), accepted);
    assert!(project.read(&pending).contains("peak_allocated: 20000"));
}
