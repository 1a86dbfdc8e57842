//! The scripts of `action.yml`: each step runs as GitHub runs it, with stand-ins for the programs that
//! would download or install something.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value, json};

use crate::fixture::{Programs, Run, workspace};

/// The value that begins with `event`. All scalars are strings.
fn value<'a>(event: Event<'a>, rest: &mut impl Iterator<Item = Event<'a>>) -> Value {
    match event {
        Event::Scalar(text, ..) => text.into(),
        Event::SequenceStart(..) => {
            let mut list = Vec::new();
            while let Some(event) = rest.next().filter(|event| *event != Event::SequenceEnd) {
                list.push(value(event, rest));
            }
            list.into()
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            while let Some(Event::Scalar(key, ..)) = rest.next() {
                let event = rest.next().expect("a value");
                map.insert(key.into_owned(), value(event, rest));
            }
            map.into()
        }
        other => panic!("{other:?} begins no value"),
    }
}

fn action() -> Value {
    let text = std::fs::read_to_string(workspace().join("action.yml")).expect("the action");
    let events = Parser::new_from_str(&text).map(|event| event.expect("YAML").0);
    let begin = |event: &Event<'_>| matches!(event, Event::StreamStart | Event::DocumentStart(_));
    let mut events = events.skip_while(begin);
    let first = events.next().expect("a document");
    value(first, &mut events)
}

/// The steps with a script.
fn scripts() -> Vec<Value> {
    let steps = action()["runs"]["steps"].as_array().expect("steps").clone();
    steps.into_iter().filter(|step| step.get("run").is_some()).collect()
}

/// The step whose script contains `part`.
fn step(part: &str) -> Value {
    let mut fits = scripts();
    fits.retain(|step| step["run"].as_str().is_some_and(|script| script.contains(part)));
    assert_eq!(fits.len(), 1, "{part} is in {} steps", fits.len());
    fits.remove(0)
}

const INSTALL: &str = "cargo install";
const CLEAN: &str = "rm -rf";
const RUN: &str = "cargo memcheck $ARGS";
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// A machine of GitHub: a home, a folder of the workspace, and a `PATH` of stand-ins, each of which
/// writes its arguments to the file `calls`.
struct Machine {
    folder: tempfile::TempDir,
    inputs: Vec<(&'static str, &'static str)>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a folder"), inputs: Vec::new() };
        for folder in ["bin", "home", "workspace", "temporary"] {
            std::fs::create_dir(machine.path(folder)).expect("a folder");
        }
        for program in ["mkdir", "tar", "gzip", "cp", "rm", "cat"] {
            let found = Path::new("/usr/bin").join(program);
            let found = if found.exists() { found } else { Path::new("/bin").join(program) };
            std::os::unix::fs::symlink(found, machine.path("bin").join(program)).expect("a link");
        }
        machine.has("rustc", "echo x86_64-unknown-linux-gnu");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds a stand-in.
    fn has(&self, program: &str, script: &str) {
        let file = self.path("bin").join(program);
        let log = format!("echo {program} \"$@\" >> {}", self.path("calls").display());
        std::fs::write(&file, format!("#!/bin/bash\n{log}\n{script}\n")).expect("a stand-in");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, executable).expect("it is executable");
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.path("calls")).unwrap_or_default()
    }

    /// Runs the script of a step as GitHub does.
    fn run(&self, step: &Value) -> Run {
        assert_eq!(step["shell"], "bash", "{step}");
        let mut bash = Command::new("/bin/bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c"]);
        bash.arg(step["run"].as_str().expect("a script")).current_dir(self.path("workspace"));
        bash.env_clear().env("PATH", self.path("bin")).env("HOME", self.path("home"));
        bash.env("RUNNER_TEMP", self.path("temporary"));
        bash.env("GITHUB_STEP_SUMMARY", self.path("summary"));
        for (name, text) in step["env"].as_object().into_iter().flatten() {
            bash.env(name, self.expression(text.as_str().expect("a text")));
        }
        Run::from_output(&bash.output().expect("bash runs"))
    }

    /// The value of a text with expressions of GitHub.
    fn expression(&self, text: &str) -> String {
        let defaults = action()["inputs"].as_object().expect("inputs").clone();
        let mut text = text.to_owned();
        for (name, input) in defaults {
            let own = self.inputs.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
            let value = own.or(input["default"].as_str()).expect("a default");
            text = text.replace(&format!("${{{{ inputs.{name} }}}}"), value);
        }
        for (name, value) in [
            ("github.server_url", "https://host"),
            ("github.action_repository", "o/memcheck"),
            ("github.action_ref", "v1"),
            ("github.token", "none"),
        ] {
            text = text.replace(&format!("${{{{ {name} }}}}"), value);
        }
        assert!(!text.contains("${{"), "{text}");
        text
    }
}

/// A `curl` that downloads a release with a command.
const RELEASE: &str =
    "cd \"$RUNNER_TEMP\"; name=cargo-memcheck-x86_64-unknown-linux-gnu-v1; mkdir $name
echo released > $name/cargo-memcheck; tar -czf $name.tar.gz $name; rm -r $name";

fn installed(machine: &Machine) -> bool {
    machine.path("home/.cargo/bin/cargo-memcheck").is_file()
}

#[test]
fn the_release_of_the_tag_is_verified_and_installed() {
    let machine = Machine::new();
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

    let forged = Machine::new();
    forged.has("curl", RELEASE);
    forged.has("gh", "exit 1");
    forged.run(&step(INSTALL)).exits(1);
    assert!(!installed(&forged), "an archive that is not attested is installed");
    let without_gh = Machine::new();
    without_gh.has("curl", RELEASE);
    without_gh.run(&step(INSTALL)).exits(0);
    assert!(installed(&without_gh));
}

#[test]
fn without_a_release_the_command_is_built_from_its_commit() {
    let machine = Machine::new();
    machine.has("curl", "exit 22");
    machine.has("cargo", "");
    machine.run(&step(INSTALL)).exits(0);
    let install = "cargo install --locked --git https://host/o/memcheck --rev v1 cargo-memcheck";
    assert!(machine.calls().contains(install), "{}", machine.calls());
    let failing = Machine::new();
    failing.has("curl", "exit 22");
    failing.has("cargo", "exit 101");
    failing.run(&step(INSTALL)).exits(101);
    // A command that is there already is kept.
    let has_it = Machine::new();
    has_it.has("cargo-memcheck", "");
    has_it.run(&step(INSTALL)).exits(0);
    assert_eq!(has_it.calls(), "");
}

/// The paths below the workspace that the action keeps as an artifact.
fn kept() -> Vec<String> {
    let steps = action()["runs"]["steps"].clone();
    let upload = steps.as_array().and_then(|steps| steps.last()).expect("a step").clone();
    let paths = upload["with"]["path"].as_str().expect("paths").to_owned();
    let inside =
        |line: &str| line.strip_prefix("${{ inputs.working-directory }}/").map(str::to_owned);
    paths.lines().filter_map(inside).collect()
}

#[test]
fn the_reports_that_are_kept_are_written_and_those_of_an_earlier_commit_removed() {
    let machine = Machine {
        inputs: vec![("args", "--device cpu"), ("badge", "public/a badge.json")],
        ..Machine::new()
    };
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
    let machine = Machine::new();
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
    let parts = [INSTALL, CLEAN, RUN, SUMMARY];
    let run: BTreeSet<String> = parts.map(|part| step(part)["run"].to_string()).into();
    let all: BTreeSet<String> = scripts().iter().map(|step| step["run"].to_string()).collect();
    assert_eq!(all, run);
}
