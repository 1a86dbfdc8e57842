//! The scripts of the workflows in `docs` that compare and comment.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::fixture::{Programs, memcheck};
use crate::steps::{self, Machine, yaml};

const COMMENT: &str = "docs/github-actions-comment.yml";
const UPDATES: &str = "docs/github-actions-updates.yml";

/// The job of a workflow.
fn job(file: &str, name: &str) -> Value {
    yaml(file)["jobs"][name].clone()
}

/// The step of a job whose script contains `part`.
#[track_caller]
fn step(job: &Value, part: &str) -> Value {
    steps::step(&job["steps"], part)
}

const INSTALL: &str = "cargo install";
const COMPARE: &str = "cargo memcheck compare";
const REQUESTS: &str = "gh api";
const REMOVE: &str = "rm -rf";
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The jobs, and the scripts of each that a test runs.
const JOBS: [(&str, &str, &[&str]); 3] = [
    (COMMENT, "comment", &[INSTALL, COMPARE, REQUESTS]),
    (UPDATES, "compare", &[REMOVE, INSTALL, COMPARE, SUMMARY]),
    (UPDATES, "try", &[INSTALL, COMPARE, SUMMARY]),
];

#[test]
fn each_script_of_the_workflows_is_run_by_a_test() {
    for (file, name, parts) in JOBS {
        let job = job(file, name);
        let run: BTreeSet<String> =
            parts.iter().map(|part| step(&job, part)["run"].to_string()).collect();
        let all = steps::scripts(&job["steps"]);
        let all: BTreeSet<String> = all.iter().map(|step| step["run"].to_string()).collect();
        assert_eq!(all, run, "{name} of {file}");
    }
    let jobs = [COMMENT, UPDATES].map(|file| yaml(file)["jobs"].as_object().expect("jobs").len());
    assert_eq!(jobs.iter().sum::<usize>(), JOBS.len());
}

#[test]
fn the_command_is_installed_if_the_machine_lacks_it() {
    for (file, name, _) in JOBS {
        let install = step(&job(file, name), INSTALL);
        let lacking = Machine::new();
        lacking.has("cargo", "[ \"$1\" = install ]");
        lacking.run(&install).exits(0);
        assert!(
            lacking.calls().contains("cargo install --git … cargo-memcheck --locked"),
            "{file}"
        );
        let has_it = Machine::new();
        has_it.has("cargo", "");
        has_it.run(&install).exits(0);
        assert_eq!(has_it.calls(), "cargo memcheck --version\n", "{file}");
    }
}

/// A machine with the pull request of the branch `b` of `o`.
fn machine() -> Machine {
    let mut machine = Machine::new();
    for (name, value) in [
        ("github.token", "none"),
        ("github.repository", "o/model"),
        ("github.event.workflow_run.head_repository.owner.login", "o"),
        ("github.event.workflow_run.head_branch", "b"),
    ] {
        machine.set(name, value);
    }
    machine
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the folder is made");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}

/// The workflow checks nothing out, so that its folder has the results only.
#[test]
fn a_comment_compares_the_results_of_the_other_workflow() {
    let programs = Programs::of("report_page");
    programs.run("cpu", &["--results", "results/head"]).exits(100);
    let machine = machine();
    for side in ["base", "head"] {
        let to = machine.path("workspace/results").join(side);
        copy_folder(&programs.path().join("results/head"), &to);
    }
    machine.has_the_command();
    let job = job(COMMENT, "comment");
    machine.run_in_job(&step(&job, COMPARE), &job).exits(0);
    let text = std::fs::read_to_string(machine.path("workspace/comment.md")).expect("the comment");
    // The script that follows finds its comment by this line.
    assert!(text.starts_with("<!-- memcheck compare -->\n## Memory: 0 tests changed"), "{text}");
    let requests = step(&job, REQUESTS)["run"].as_str().expect("a script").to_owned();
    assert!(requests.contains("startswith(\"<!-- memcheck compare -->\")"), "{requests}");
}

#[test]
fn the_comment_of_the_branch_is_made_once_and_then_updated() {
    let mut machine = machine();
    let job = job(COMMENT, "comment");
    let requests = step(&job, REQUESTS);
    let comment =
        |id: u64, kind: &str, body: &str| json!({"id": id, "user": {"type": kind}, "body": body});
    let mark = "<!-- memcheck compare -->\n## Memory";
    let others = [comment(1, "User", mark), comment(2, "Bot", "<!-- memcheck report memcheck -->")];
    // Without an open pull request there is nothing to comment.
    if !machine.has_gh(&json!([]), &json!(others)) {
        return;
    }
    machine.run_in_job(&requests, &job).exits(0);
    let asked = "gh api --method GET repos/o/model/pulls -f state=open -f head=o:b --jq";
    assert!(machine.calls().starts_with(asked), "{}", machine.calls());
    assert_eq!(machine.written(), [""; 0]);

    let pulls = json!([{"number": 7}]);
    machine.has_gh(&pulls, &json!(others));
    machine.run_in_job(&requests, &job).exits(0);
    let body = "-F body=@comment.md --silent";
    let made = format!("gh api --method POST repos/o/model/issues/7/comments {body}");
    assert_eq!(machine.written(), [made]);

    let [first, second] = [42, 43].map(|id| comment(id, "Bot", mark));
    machine.has_gh(&pulls, &json!([others[0], others[1], first, second]));
    // The name of a branch is not a part of the script.
    machine.set("github.event.workflow_run.head_branch", "x\"$(touch ran)`touch ran`");
    machine.run_in_job(&requests, &job).exits(0);
    let updated = format!("gh api --method PATCH repos/o/model/issues/comments/42 {body}");
    assert_eq!(machine.written(), [updated]);
    assert!(!machine.path("workspace/ran").exists(), "the name of a branch was run");

    machine.has("gh", "exit 1");
    machine.run_in_job(&requests, &job).exits(1);
}

/// A `cargo` that writes each argument on a line, and the report that is asked for.
fn records_words(machine: &Machine) {
    let words = machine.path("words");
    machine.has(
        "cargo",
        &format!(
            "printf '%s\\n' \"$@\" > {}\n\
             for word in \"$@\"; do case $word in markdown=*) echo compared > ${{word#markdown=}};; esac; done",
            words.display()
        ),
    );
}

#[test]
fn updates_are_compared_with_their_base_and_tried_on_request() {
    let update = "a; touch ran";
    for (name, expected) in [
        ("compare", vec!["memcheck", "compare", "HEAD^1"]),
        ("try", vec!["memcheck", "compare", "--update", update]),
    ] {
        let mut machine = machine();
        machine.set("inputs.update", update);
        records_words(&machine);
        let folder = machine.path("workspace/target/memcheck/compare/base");
        std::fs::create_dir_all(&folder).expect("the folder is made");
        let job = job(UPDATES, name);
        if name == "compare" {
            machine.run_in_job(&step(&job, REMOVE), &job).exits(0);
            assert!(!folder.exists(), "results of an earlier commit are left");
        }
        machine.run_in_job(&step(&job, COMPARE), &job).exits(0);
        let words = std::fs::read_to_string(machine.path("words")).expect("the words");
        let words: Vec<&str> = words.lines().collect();
        assert_eq!(words[..expected.len()], expected);
        assert_eq!(words[words.len() - 3..], ["--", "--device", "sim"]);
        machine.run_in_job(&step(&job, SUMMARY), &job).exits(0);
        let summary = std::fs::read_to_string(machine.path("summary")).expect("the summary");
        assert_eq!(summary, "compared\n");
        assert!(!machine.path("workspace/ran").exists(), "the name of a dependency was run");

        // The command accepts the arguments.
        let is_refused = |words: &[&str]| {
            let empty = tempfile::tempdir().expect("a folder");
            let run = memcheck(empty.path(), words);
            assert_ne!(run.code, 0, "there is nothing to compare");
            run.stderr.contains("For more information, try '--help'.")
        };
        let words: Vec<&str> = words[1..]
            .iter()
            .map(|word| if *word == update { "serde@1.0.200" } else { *word })
            .collect();
        assert!(!is_refused(&words), "{words:?}");
        assert!(is_refused(&[&["compare", "--updaet"], &words[1..]].concat()), "{words:?}");
    }
}
