//! `compare --update`: updates of dependencies that are refused, or that change nothing.

mod registry;

use crate::fixture::{Project, Run, cargo, share_build};
use crate::no_candle;
use crate::which_candle::git;

const DEPENDENCIES: &str = "\
[dependencies]
pool = { version = \"0.1\", registry = \"prepared\" }
ring = { version = \"1\", registry = \"prepared\" }
left = { version = \"1\", registry = \"prepared\" }
right = { version = \"1\", registry = \"prepared\" }
wide = { version = \">=1, <3\", registry = \"prepared\" }
twice-1 = { package = \"twice\", version = \"1\", registry = \"prepared\" }
twice-2 = { package = \"twice\", version = \"2\", registry = \"prepared\" }
pulled = { version = \"1\", registry = \"prepared\" }
";

/// The names of the dependencies, and of a test for each.
const TESTS: [&str; 8] = ["pool", "ring", "left", "right", "wide", "twice_1", "twice_2", "pulled"];

fn tests() -> String {
    let test = |name: &&str| {
        format!(
            "#[memcheck_runtime::mem_test(baseline = false)]\nfn {name}() {{\n    \
             ::{name}::hold();\n}}\n"
        )
    };
    TESTS.iter().map(test).collect::<Vec<_>>().join("\n")
}

/// A repository whose lock file has the oldest versions, at the tag `oldest`.
fn project(name: &str) -> Project {
    let project = Project::named(name);
    project.write("Cargo.toml", &no_candle::manifest(name, DEPENDENCIES));
    project.write("tests/mem.rs", &tests());
    registry::write_oldest(&project);
    update(&project, &["--workspace"]);
    registry::write_newer(&project);
    project.write(".gitignore", "/a.*\n");
    git(project.path(), &["init", "--quiet", "--initial-branch", "main"]);
    commit(&project, "oldest");
    project
}

/// `cargo update` in the project.
fn update(project: &Project, arguments: &[&str]) {
    let mut command = cargo();
    command.args(["update", "--offline"]).args(arguments).current_dir(project.path());
    share_build(&mut command);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn commit(project: &Project, tag: &str) {
    git(project.path(), &["add", "--all", "."]);
    git(project.path(), &["commit", "--quiet", "--allow-empty", "--message", tag]);
    git(project.path(), &["tag", tag]);
}

fn compare(project: &Project, arguments: &[&str], run: &[&str]) -> Run {
    let arguments =
        [&["compare"], arguments, &["--", "--device", "cpu", "--offline"], run].concat();
    project.memcheck(&arguments)
}

/// A refusal ends before a build, and a change that is not committed is left out.
#[test]
fn an_update_that_is_refused_or_changes_nothing_builds_nothing() {
    let project = project("not-updated");
    let run = |update: &str| compare(&project, &["--update", update], &[]);
    run("pol").exits(2).prints("Cargo.lock has no package `pol`").prints("did you mean `pool`?");
    run("not-updated").exits(2).prints("`not-updated` is a package of a folder");
    run("twice@3.0.0").exits(2).prints("`twice` 1.0.0 and 2.0.0").prints("twice@3.0.0");
    run("pool@^0.1").exits(2).prints("write NAME, or NAME@VERSION");
    // Cargo's own message, and the requirement.
    let refused = run("pool@0.2.0").exits(102);
    let refused = refused.prints("failed to select a version for").prints("0.2.0");
    refused
        .prints("`not-updated` requires `pool = \"^0.1\"`")
        .prints("cargo memcheck compare BASE");
    run("pool@0.1.7").exits(102).prints("cargo cannot update `pool@0.1.7`");
    let excluded = run("pool@0.1.2,pool@0.1.1").exits(2);
    excluded.prints("after the update to `pool@0.1.2`, Cargo.lock has `pool` 0.1.1");
    for update in ["pool@0.1.0", "right", "pulled"] {
        let unchanged = run(update).exits(0);
        let nothing = "nothing changes, because Cargo.lock is the same";
        let expected = format!("HEAD with {update}: {nothing}\n");
        assert_eq!(unchanged.stdout, expected);
        assert!(!unchanged.stderr.contains("running the tests"), "{}", unchanged.stderr);
    }
    project.write("src/lib.rs", "this is not Rust\n");
    let run = compare(&project, &["--update", "pool@0.1.0", "--report", "markdown=a.md"], &[]);
    run.exits(0).prints("uncommitted changes are left out: both runs are of HEAD");
    assert!(project.read("a.md").contains(": nothing changes, because "));
    assert_eq!(git(project.path(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(project.path(), &["status", "--porcelain"]), "M src/lib.rs");
    project.memcheck(&["compare", "main", "HEAD", "--update", "pool"]).exits(2);
    project.memcheck(&["compare"]).exits(2).prints("<BASE>");
}
