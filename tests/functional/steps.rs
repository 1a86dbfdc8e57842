//! Runs the scripts of an action or a workflow as GitHub runs them, with stand-ins for the programs that
//! would download, install or publish something.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use crate::fixture::{Run, command, skip_reader, workspace};

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

/// A file of the workspace in YAML.
pub(crate) fn yaml(file: &str) -> Value {
    let text = std::fs::read_to_string(workspace().join(file)).expect("the file");
    let events = Parser::new_from_str(&text).map(|event| event.expect("YAML").0);
    let begin = |event: &Event<'_>| matches!(event, Event::StreamStart | Event::DocumentStart(_));
    let mut events = events.skip_while(begin);
    let first = events.next().expect("a document");
    value(first, &mut events)
}

/// The steps with a script.
pub(crate) fn scripts(steps: &Value) -> Vec<Value> {
    let steps = steps.as_array().expect("steps").iter();
    steps.filter(|step| step.get("run").is_some()).cloned().collect()
}

/// The step whose script contains `part`.
#[track_caller]
pub(crate) fn step(steps: &Value, part: &str) -> Value {
    let mut fits = scripts(steps);
    fits.retain(|step| step["run"].as_str().is_some_and(|script| script.contains(part)));
    assert_eq!(fits.len(), 1, "{part} is in {} steps", fits.len());
    fits.remove(0)
}

/// A machine of GitHub: a home, a folder of the workspace, and a `PATH` of stand-ins, each of which
/// writes its arguments to the file `calls`.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    /// The values of expressions such as `inputs.args`.
    values: Vec<(String, String)>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a folder"), values: Vec::new() };
        for folder in ["bin", "home", "workspace", "temporary"] {
            std::fs::create_dir(machine.path(folder)).expect("a folder");
        }
        for program in ["mkdir", "tar", "gzip", "cp", "rm", "cat", "head"] {
            assert!(machine.links(program), "this machine has no {program}");
        }
        machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives it a program of this machine; false if this machine has none.
    fn links(&self, program: &str) -> bool {
        let places = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
        let found = places.into_iter().find(|path| path.exists());
        let link = |path| std::os::unix::fs::symlink(path, self.path("bin").join(program));
        found.is_some_and(|path| link(path).is_ok())
    }

    /// Sets the value of an expression. A later value replaces an earlier one.
    pub(crate) fn set(&mut self, expression: &str, value: &str) {
        self.values.insert(0, (expression.to_owned(), value.to_owned()));
    }

    /// Adds a stand-in.
    pub(crate) fn has(&self, program: &str, script: &str) {
        let file = self.path("bin").join(program);
        let log = format!("echo {program} \"$@\" >> {}", self.path("calls").display());
        std::fs::write(&file, format!("#!/bin/bash\n{log}\n{script}\n")).expect("a stand-in");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, executable).expect("it is executable");
    }

    /// A `cargo` that runs the command under test.
    pub(crate) fn has_the_command(&self) {
        let own = command(self.folder.path(), &[]);
        self.has("cargo", &format!("exec {} \"$@\"", own.get_program().display()));
    }

    /// A `gh` whose requests are answered with these lists of pull requests and of comments. False with a
    /// printed reason if this machine has no `jq`, which reads the answers as `gh` does.
    pub(crate) fn has_gh(&self, pulls: &Value, comments: &Value) -> bool {
        if !self.links("jq") && !self.path("bin/jq").exists() {
            skip_reader("this machine has no jq");
            return false;
        }
        for (file, answer) in [("pulls", pulls), ("comments", comments)] {
            std::fs::write(self.path(file), answer.to_string()).expect("the answer");
        }
        let answer =
            |file: &str| format!("jq --raw-output \"$filter\" {}", self.path(file).display());
        let script = format!(
            "for word in \"$@\"; do if [ \"$last\" = --jq ]; then filter=$word; fi; last=$word; done\n\
             case \"$*\" in *\"--method GET\"*) {};; *--paginate*) {};; esac",
            answer("pulls"),
            answer("comments")
        );
        self.has("gh", &script);
        true
    }

    pub(crate) fn calls(&self) -> String {
        std::fs::read_to_string(self.path("calls")).unwrap_or_default()
    }

    /// The calls of `gh` that write something, since the last call of this function.
    pub(crate) fn written(&self) -> Vec<String> {
        let calls = self.calls();
        let _ = std::fs::remove_file(self.path("calls"));
        let writes = |line: &&str| line.contains("PATCH") || line.contains("POST");
        calls.lines().filter(writes).map(str::to_owned).collect()
    }

    /// Runs the script of a step as GitHub does.
    pub(crate) fn run(&self, step: &Value) -> Run {
        self.run_in_job(step, &Value::Null)
    }

    /// The same with the variables of the job.
    pub(crate) fn run_in_job(&self, step: &Value, job: &Value) -> Run {
        let mut bash = Command::new("/bin/bash");
        match step["shell"].as_str() {
            Some("bash") => bash.args(["--noprofile", "--norc", "-eo", "pipefail"]),
            None => bash.arg("-e"),
            Some(other) => panic!("no test runs {other}"),
        };
        bash.args(["-c", step["run"].as_str().expect("a script")]);
        bash.current_dir(self.path("workspace"));
        bash.env_clear().env("PATH", self.path("bin")).env("HOME", self.path("home"));
        bash.env("RUNNER_TEMP", self.path("temporary"));
        bash.env("GITHUB_STEP_SUMMARY", self.path("summary"));
        let variables = [&job["env"], &step["env"]].into_iter().filter_map(Value::as_object);
        for (name, text) in variables.flatten() {
            bash.env(name, self.expression(text.as_str().expect("a text")));
        }
        Run::from_output(&bash.output().expect("bash runs"))
    }

    /// The value of a text with expressions of GitHub.
    fn expression(&self, text: &str) -> String {
        let text = self.values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{{ {name} }}}}"), value)
        });
        assert!(!text.contains("${{"), "{text} has no value here");
        text
    }
}
