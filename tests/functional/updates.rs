//! `compare --update`: the packages that an update of a dependency changes, and the bytes, over
//! prepared lock files.

mod cases;
mod registry;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bisect::without_commits;
use crate::fixture::{Project, Run, cargo, share_build, workspace};
use crate::lock_files;
use crate::no_candle;
use crate::which_candle::git;
use cases::{CASES, Case};

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

/// Commits the lock file of a case: the oldest one with some versions changed, in this order.
fn prepare(project: &Project, tag: &str, versions: &[&str]) {
    git(project.path(), &["checkout", "--quiet", "oldest"]);
    for version in versions {
        let (package, version) = version.split_once(" -> ").expect("a package and a version");
        update(project, &[package, "--precise", version]);
        let name = package.split('@').next().unwrap_or(package);
        let locked = lock_files::versions(&project.read("Cargo.lock"), name);
        assert!(locked.contains(version), "{package} has {locked:?}");
    }
    commit(project, tag);
}

fn compare(project: &Project, arguments: &[&str], run: &[&str]) -> Run {
    let arguments =
        [&["compare"], arguments, &["--", "--device", "cpu", "--offline"], run].concat();
    project.memcheck(&arguments)
}

/// `pool 0.1.0 -> 0.1.1`, as the command prints it.
fn shown(update: &Value) -> String {
    let name = update["package"].as_str().expect("a name");
    match (update["from"].as_str(), update["to"].as_str()) {
        (Some(from), Some(to)) => format!("{name} {from} -> {to}"),
        (None, Some(to)) => format!("{name} {to} (new)"),
        (Some(from), None) => format!("{name} {from} (removed)"),
        (None, None) => panic!("no version: {update}"),
    }
}

/// The packages of a comparison that were named, or those that were not.
fn packages(line: &Value, requested: bool) -> Vec<String> {
    let updates = line["updates"].as_array().expect("updates").iter();
    updates.filter(|update| update["requested"] == requested).map(shown).collect()
}

/// The test, and the bytes of its peak before and after.
fn peaks(line: &Value) -> BTreeSet<(String, u64, u64)> {
    let changed = line["changed"].as_array().expect("changed tests").iter();
    let peak = |test: &Value| {
        let figures = test["figures"].as_array().expect("figures").iter();
        let peak = figures.clone().find(|it| it["figure"] == "peak_allocated").expect("a peak");
        assert_eq!(peak["space"], "host");
        let bytes = |side: &str| peak[side].as_u64().expect("bytes");
        (test["test"].as_str().expect("a name").to_owned(), bytes("base"), bytes("head"))
    };
    changed.map(peak).collect()
}

fn assert_case(project: &Project, number: usize, case: &Case) {
    let tag = format!("case-{number}");
    prepare(project, &tag, case.prepared);
    let updates = case.updates.iter().flat_map(|update| ["--update", update]);
    let arguments: Vec<&str> = [tag.as_str(), "--message-format", "json", "--tolerance", "0%"]
        .into_iter()
        .chain(updates)
        .collect();
    let run = compare(project, &arguments, &[]).exits(0);
    let line = &run.json()[0];
    let context = format!("case {number}, {:?}: {}", case.updates, line["updates"]);
    assert_eq!(packages(line, true), case.requested, "{context}");
    assert_eq!(packages(line, false), case.along, "{context}");
    let expected: BTreeSet<_> =
        case.peaks.iter().map(|&(test, base, head)| (test.to_owned(), base, head)).collect();
    assert_eq!(peaks(line), expected, "{context}");
    let measured = if case.requested.is_empty() { 0 } else { TESTS.len() as u64 };
    let tests = ["base", "head"].map(|side| line[side]["tests"].as_u64());
    assert_eq!(tests, [Some(measured); 2], "{context}");
    let unchanged = measured.saturating_sub(case.peaks.len() as u64);
    assert_eq!(line["unchanged"].as_u64(), Some(unchanged), "{context}");
}

#[test]
#[ignore = "slow: just all"]
fn each_of_the_prepared_lock_files_names_the_packages_and_the_bytes() {
    let project = project("prepared");
    let different: BTreeSet<_> = CASES.iter().map(|case| case.prepared).collect();
    assert!(CASES.len() > 20 && different.len() >= 20, "{}", different.len());
    for (number, case) in CASES.iter().enumerate() {
        assert_case(&project, number, case);
    }
}

/// The reference shows the text.
#[test]
#[ignore = "slow: just all"]
fn each_form_names_the_update_and_the_packages_that_change_along() {
    let project = project("updated");
    let reports = ["markdown=a.md", "html=a.html", "json=a.json"];
    let reports = reports.iter().flat_map(|report| ["--report", report]);
    let arguments: Vec<&str> =
        ["--update", "ring@1.1.0", "--fail-on-regression"].into_iter().chain(reports).collect();
    let run = compare(&project, &arguments, &[]).exits(100);
    let page = std::fs::read_to_string(workspace().join("docs/reference/compare.md"));
    let page = without_commits(&page.expect("the page of the reference"));
    let command = "$ cargo memcheck compare --update ring@1.1.0 -- --device cpu --offline";
    let output = format!("{command}\n{}", without_commits(&run.stdout));
    assert!(page.contains(&output), "{output}");
    for (report, lines) in [
        ("a.md", ["Updated: ring 1.0.0 → 1.1.0", "Also changed: pool 0.1.0 → 0.1.3"]),
        ("a.html", ["Updated: ring 1.0.0 -&gt; 1.1.0", "Also changed: pool 0.1.0 -&gt; 0.1.3"]),
        (
            "a.json",
            [
                "{\"package\":\"ring\",\"from\":\"1.0.0\",\"to\":\"1.1.0\",\"requested\":true}",
                "{\"package\":\"pool\",\"from\":\"0.1.0\",\"to\":\"0.1.3\",\"requested\":false}",
            ],
        ),
    ] {
        let text = project.read(report);
        assert!(text.contains("HEAD with ring 1.1.0"), "{text}");
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
    }
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
