//! The scripts of `action.yml`, and its steps that use other actions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{Programs, workspace};
use crate::steps::{self, Machine, yaml};

fn action() -> Value {
    yaml("action.yml")
}

/// The step whose script contains `part`.
#[track_caller]
fn step(part: &str) -> Value {
    steps::step(&action()["runs"]["steps"], part)
}

/// The step that uses another action.
#[track_caller]
fn using(name: &str) -> Value {
    let steps = action()["runs"]["steps"].as_array().expect("steps").clone();
    let is_used = |step: &Value| step["uses"].as_str().is_some_and(|uses| uses.contains(name));
    steps.into_iter().find(is_used).unwrap_or_else(|| panic!("no step uses {name}"))
}

/// A machine that runs the action with the defaults of its inputs.
fn prepared() -> Machine {
    let mut machine = Machine::new();
    for (name, input) in action()["inputs"].as_object().expect("inputs") {
        machine.set(&format!("inputs.{name}"), input["default"].as_str().expect("a default"));
    }
    for (name, value) in [
        ("github.server_url", "https://host"),
        ("github.action_repository", "o/memcheck"),
        ("github.action_ref", "v1"),
        ("github.token", "none"),
        ("github.repository", "o/model"),
        ("github.event.pull_request.number", "7"),
        ("github.event.pull_request.head.repo.full_name", "o/model"),
        ("github.event.pull_request.user.login", "person"),
    ] {
        machine.set(name, value);
    }
    machine.has("rustc", "echo x86_64-unknown-linux-gnu");
    machine
}

const INSTALL: &str = "cargo install";
const CLEAN: &str = "rm -rf";
const RUN: &str = "cargo memcheck $ARGS";
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";
const COMMENT: &str = "gh api";

/// A `curl` that downloads a release with a command.
const RELEASE: &str =
    "cd \"$RUNNER_TEMP\"; name=cargo-memcheck-x86_64-unknown-linux-gnu-v1; mkdir $name
echo released > $name/cargo-memcheck; tar -czf $name.tar.gz $name; rm -r $name";

fn installed(machine: &Machine) -> bool {
    machine.path("home/.cargo/bin/cargo-memcheck").is_file()
}

#[test]
fn the_release_of_the_tag_is_verified_and_installed() {
    let machine = prepared();
    machine.has("curl", RELEASE);
    machine.has("gh", "");
    machine.run(&step(INSTALL)).exits(0);
    assert!(installed(&machine));
    let calls = machine.calls();
    let archive = "releases/download/v1/cargo-memcheck-x86_64-unknown-linux-gnu-v1.tar.gz";
    assert!(calls.contains(&format!("https://host/o/memcheck/{archive}")), "{calls}");
    assert!(
        calls.contains("gh attestation verify") && calls.contains("--repo o/memcheck"),
        "{calls}"
    );

    let forged = prepared();
    forged.has("curl", RELEASE);
    forged.has("gh", "exit 1");
    forged.run(&step(INSTALL)).exits(1);
    assert!(!installed(&forged), "an archive that is not attested is installed");
    let without_gh = prepared();
    without_gh.has("curl", RELEASE);
    without_gh.run(&step(INSTALL)).exits(0);
    assert!(installed(&without_gh));
}

#[test]
fn without_a_release_the_command_is_built_from_its_commit() {
    let machine = prepared();
    machine.has("curl", "exit 22");
    machine.has("cargo", "");
    machine.run(&step(INSTALL)).exits(0);
    let install = "cargo install --locked --git https://host/o/memcheck --rev v1 cargo-memcheck";
    assert!(machine.calls().contains(install), "{}", machine.calls());
    let failing = prepared();
    failing.has("curl", "exit 22");
    failing.has("cargo", "exit 101");
    failing.run(&step(INSTALL)).exits(101);
    // A command that is there already is kept.
    let has_it = prepared();
    has_it.has("cargo-memcheck", "");
    has_it.run(&step(INSTALL)).exits(0);
    assert_eq!(has_it.calls(), "");
}

/// The paths below the workspace that the action keeps as an artifact.
fn kept() -> Vec<String> {
    let paths =
        using("actions/upload-artifact")["with"]["path"].as_str().expect("paths").to_owned();
    let inside =
        |line: &str| line.strip_prefix("${{ inputs.working-directory }}/").map(str::to_owned);
    paths.lines().filter_map(inside).collect()
}

#[test]
fn the_reports_that_are_kept_are_written_and_those_of_an_earlier_commit_removed() {
    let mut machine = prepared();
    machine.set("inputs.args", "--device cpu");
    machine.set("inputs.badge", "public/a badge.json");
    // Each argument is a line.
    machine.has("cargo", &format!("printf '%s\\n' \"$@\" > {}", machine.path("words").display()));
    machine.run(&step(RUN)).exits(0);
    let words = std::fs::read_to_string(machine.path("words")).expect("the words");
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words[..3], ["memcheck", "--device", "cpu"]);

    let programs = Programs::of("report_page");
    programs.run("cpu", &words[3..]).exits(100);
    let badge = "public/a badge.json";
    let result: Value = serde_json::from_str(&programs.read(badge)).expect("JSON");
    assert_eq!(
        (&result["label"], &result["message"]),
        (&json!("memory tests"), &json!("1 failed"))
    );
    let pending = "target/memcheck/pending".to_owned();
    let mut files = kept();
    assert!(files.contains(&pending), "{files:?}");
    files.retain(|file| *file != pending);
    for name in ["report", "sarif"] {
        let path = action()["outputs"][name]["value"].as_str().expect("a path").to_owned();
        files.push(path.replace("${{ inputs.working-directory }}/", ""));
    }
    files.extend(["target/memcheck/report.md".to_owned(), badge.to_owned()]);
    for file in &files {
        assert!(programs.has(file), "{file}");
        let copy = machine.path("workspace").join(file);
        std::fs::create_dir_all(copy.parent().expect("a folder")).expect("the folder is made");
        std::fs::copy(programs.path().join(file), copy).expect("a copy");
    }
    machine.run(&step(SUMMARY)).exits(0);
    let summary = std::fs::read_to_string(machine.path("summary")).expect("the summary");
    assert_eq!(summary, programs.read("target/memcheck/report.md"));

    let kept_by_user = machine.path("workspace/target/memcheck/other.html");
    std::fs::write(&kept_by_user, "").expect("the file is written");
    machine.run(&step(CLEAN)).exits(0);
    let left = |file: &&String| machine.path("workspace").join(file).exists();
    assert_eq!(files.iter().find(left), None);
    assert!(kept_by_user.exists());
    // Without a report there is nothing to add.
    machine.run(&step(SUMMARY)).exits(0);
    assert_eq!(std::fs::read_to_string(machine.path("summary")).expect("the summary"), summary);
}

#[test]
fn without_a_badge_none_is_written() {
    let machine = prepared();
    machine.has("cargo", "");
    machine.run(&step(RUN)).exits(0);
    let calls = machine.calls();
    assert!(
        calls.starts_with("cargo memcheck --device sim --device cpu --report html="),
        "{calls}"
    );
    assert!(!calls.contains("badge") && !calls.contains("  "), "{calls}");
    machine.run(&step(CLEAN)).exits(0);
}

#[test]
fn each_script_of_the_action_is_run_by_a_test() {
    let parts = [INSTALL, CLEAN, RUN, SUMMARY, COMMENT];
    let run: BTreeSet<String> = parts.map(|part| step(part)["run"].to_string()).into();
    let all = steps::scripts(&action()["runs"]["steps"]);
    let all: BTreeSet<String> = all.iter().map(|step| step["run"].to_string()).collect();
    assert_eq!(all, run);
}

/// The report of an earlier commit is removed before the first step that can fail.
#[test]
fn the_output_of_an_earlier_commit_is_removed_first() {
    let scripts = steps::scripts(&action()["runs"]["steps"]);
    assert!(scripts[0]["run"].as_str().is_some_and(|script| script.contains(CLEAN)));
}

fn write_report(machine: &Machine, text: &str) {
    let folder = machine.path("workspace/target/memcheck");
    std::fs::create_dir_all(&folder).expect("the folder is made");
    std::fs::write(folder.join("report.md"), text).expect("the report is written");
}

/// A comment in an answer of GitHub.
fn comment(id: u64, kind: &str, body: &str) -> Value {
    json!({"id": id, "user": {"type": kind}, "body": body})
}

const MARK: &str = "<!-- memcheck report memcheck -->";

#[test]
fn the_comment_of_a_pull_request_is_made_once_and_then_updated() {
    let mut machine = prepared();
    let others = [comment(1, "User", MARK), comment(2, "Bot", "<!-- memcheck compare -->")];
    if !machine.has_gh(&json!([]), &json!(others)) {
        return;
    }
    // Without a report there is nothing to comment.
    machine.run(&step(COMMENT)).exits(0);
    assert_eq!(machine.calls(), "");

    write_report(&machine, "## 1 failed\n");
    machine.run(&step(COMMENT)).exits(0);
    let body = "-F body=@target/memcheck/comment.md --silent";
    let made = format!("gh api --method POST repos/o/model/issues/7/comments {body}");
    assert_eq!(machine.written(), [made.as_str()]);
    let written = machine.path("workspace/target/memcheck/comment.md");
    let text = std::fs::read_to_string(written).expect("the comment");
    assert_eq!(text, format!("{MARK}\n## 1 failed\n"));

    let [first, second] = [42, 43].map(|id| comment(id, "Bot", &text));
    machine.has_gh(&json!([]), &json!([others[0], others[1], first, second]));
    machine.run(&step(COMMENT)).exits(0);
    let updated = format!("gh api --method PATCH repos/o/model/issues/comments/42 {body}");
    assert_eq!(machine.written(), [updated]);
    // Another job of the workflow has its own comment.
    machine.set("inputs.artifact", "memcheck-sim");
    machine.run(&step(COMMENT)).exits(0);
    assert_eq!(machine.written(), [made]);
}

#[test]
fn a_comment_that_cannot_be_written_is_an_error_or_a_notice_with_the_next_step() {
    let mut machine = prepared();
    write_report(&machine, "## 1 failed\n");
    machine.has("gh", "echo 'HTTP 403' >&2; exit 1");
    let refused = machine.run(&step(COMMENT)).exits(1);
    let stdout = refused.stdout;
    assert!(stdout.contains("::error") && stdout.contains("pull-requests: write"), "{stdout}");
    let _ = std::fs::remove_file(machine.path("calls"));

    machine.set("github.event.pull_request.user.login", "dependabot[bot]");
    let of_bot = machine.run(&step(COMMENT)).exits(0);
    machine.set("github.event.pull_request.user.login", "person");
    machine.set("github.event.pull_request.head.repo.full_name", "fork/$(touch ran)");
    let of_fork = machine.run(&step(COMMENT)).exits(0);
    for run in [of_bot, of_fork] {
        let recipe = "docs/github-actions-comment.yml";
        assert!(run.stdout.contains("::notice") && run.stdout.contains(recipe), "{}", run.stdout);
        assert!(workspace().join(recipe).is_file());
    }
    assert_eq!(machine.calls(), "");
    assert!(!machine.path("workspace/ran").exists(), "a text of the fork was run");
}

/// These are off by default, because a job needs permissions for them.
#[test]
fn findings_and_comment_are_published_on_request_only() {
    let upload = using("github/codeql-action/upload-sarif");
    let sarif = &action()["outputs"]["sarif"]["value"];
    assert_eq!((&upload["with"]["sarif_file"], sarif.is_string()), (sarif, true));
    for (step, input) in [(&upload, "sarif"), (&step(COMMENT), "comment")] {
        assert_eq!(action()["inputs"][input]["default"], "false");
        let condition = step["if"].as_str().expect("a condition");
        assert!(condition.starts_with("always() && "), "{condition}");
        assert!(condition.contains(&format!("inputs.{input} == 'true'")), "{condition}");
    }
    // Two jobs of a workflow replace neither the artifact nor the findings of each other.
    let name = "${{ inputs.artifact }}";
    assert_eq!(using("actions/upload-artifact")["with"]["name"], name);
    assert_eq!(
        (&upload["with"]["category"], &step(COMMENT)["env"]["NAME"]),
        (&name.into(), &name.into())
    );
    assert_eq!(action()["inputs"]["artifact"]["default"], "memcheck");
}

#[test]
fn each_input_and_output_is_documented() {
    let page = workspace().join("docs/reference/reports.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, section) = page.split_once("### In GitHub Actions\n").expect("the section");
    let (section, _) = section.split_once("\n### ").expect("its end");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: Vec<&str> = rows.map(|(name, _)| name).collect();
    let action = action();
    let inputs = action["inputs"].as_object().expect("inputs").keys().cloned();
    let outputs = action["outputs"].as_object().expect("outputs").keys();
    let names: BTreeSet<String> =
        inputs.chain(outputs.map(|name| format!("outputs.{name}"))).collect();
    assert_eq!(documented.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), names);
}
