//! One moment: starts a command, waits for a phase and a random time, sends the signals, and
//! observes the end.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::TESTS;
use super::processes::{Process, VARIABLE, with_variable};
use crate::fixture::{Project, command, interrupt};

const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Resolve,
    Build,
    Extract,
    List,
    Run,
    Explain,
    Write,
    Merge,
}

impl Phase {
    pub(super) const ALL: [Self; 8] = [
        Self::Resolve,
        Self::Build,
        Self::Extract,
        Self::List,
        Self::Run,
        Self::Explain,
        Self::Write,
        Self::Merge,
    ];

    /// About how long it takes, in milliseconds.
    fn duration(self) -> u64 {
        match self {
            Self::Resolve => 100,
            Self::Build => 2500,
            Self::Extract => 1000,
            Self::List => 350,
            Self::Run => 900,
            Self::Explain => 600,
            Self::Write | Self::Merge => 250,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Kill,
    Signal,
    TwoSignals,
}

impl Fault {
    pub(super) const ALL: [Self; 3] = [Self::Kill, Self::Signal, Self::TwoSignals];
}

pub(super) struct Outcome {
    /// The phase in which the signal arrived.
    pub(super) phase: Phase,
    pub(super) until_end: Duration,
    /// From the end of the command to the end of its last process.
    pub(super) until_none: Duration,
    pub(super) code: i32,
    pub(super) folders: u32,
    pub(super) problems: Vec<String>,
}

/// A project with the tests, and an archive and two shards of it.
pub(super) struct Scene {
    project: Project,
    temporary: tempfile::TempDir,
    number: std::cell::Cell<u32>,
    /// In which a command must end after a signal, and its processes after it.
    limit: Duration,
}

const JSON: [&str; 4] = ["--device", "cpu", "--message-format", "json"];

impl Scene {
    pub(super) fn new(has_archive: bool, limit: Duration) -> Self {
        let project = Project::new(TESTS);
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let scene = Self { project, temporary, number: Default::default(), limit };
        scene.ends(&["list", "--device", "cpu"], &[0]);
        if has_archive {
            scene.ends(&["archive", "--archive-file", "app.tar.zst", "--device", "cpu"], &[0]);
            for shard in ["1", "2"] {
                let part = format!("hash:{shard}/2");
                let folder = format!("shard{shard}");
                let run = ["run", "--no-ci", "--partition", &part, "--results", &folder];
                scene.ends(&[&run[..], &JSON].concat(), &[0, 4, 100]);
            }
        }
        scene
    }

    fn ends(&self, arguments: &[&str], codes: &[i32]) {
        let (mut child, _) = self.start(arguments);
        let code = child.wait().expect("the command ends").code();
        assert!(code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {code:?}");
    }

    /// Returns the value of the variable.
    fn start(&self, arguments: &[&str]) -> (Child, String) {
        self.number.set(self.number.get() + 1);
        let value = format!("{}-{}", std::process::id(), self.number.get());
        let mut command = command(self.project.path(), arguments);
        let output = |name| File::create(self.temporary.path().join(name)).expect("a file");
        command
            .env(VARIABLE, &value)
            .env("TMPDIR", self.temporary.path())
            .stdout(output("stdout"))
            .stderr(output("stderr"));
        (command.spawn().expect("cargo-memcheck starts"), value)
    }

    fn start_for(&self, phase: Phase) -> (Child, String) {
        let run = ["run", "--no-ci", "--report", "html=report.html", "--report", "junit=junit.xml"];
        let arguments = match phase {
            Phase::Merge => {
                vec!["report", "--merge", "shard1", "shard2", "--report", "html=m.html"]
            }
            Phase::Extract => [&run[..], &["--archive-file", "app.tar.zst"]].concat(),
            _ => run.to_vec(),
        };
        if phase == Phase::Build {
            let number = self.number.get();
            let tests = format!(
                "#![allow(unused_imports)]\nuse memcheck_runtime::{{Trial, mem_test}};\n{TESTS}\n// {number}\n"
            );
            self.project.write("tests/mem.rs", &tests);
        } else if phase == Phase::Resolve {
            // An input of cargo has changed, so that the command asks cargo again.
            self.project.write("src/lib.rs", &format!("//! {}\n", self.number.get()));
        }
        let json: &[&str] = if phase == Phase::Merge { &JSON[2..] } else { &JSON };
        self.start(&[&arguments[..], json].concat())
    }

    pub(super) fn try_moment(
        &self,
        phase: Phase,
        fault: Fault,
        below: &mut impl FnMut(u64) -> u64,
    ) -> Outcome {
        for attempt in 0..20 {
            // A command that was killed has left its folder, which the next one removes when it
            // needs one itself.
            let before = self.temporary_folders();
            let (mut child, value) = self.start_for(phase);
            let started = Instant::now();
            // A phase can be much shorter than its usual time, so each attempt waits for less.
            let longest = phase.duration() * 4 / (4 + attempt);
            let pause = Duration::from_millis(below(longest));
            let Some(actual) = wait_for_moment(&mut child, &value, phase, pause) else {
                // The command ended first.
                let _ = child.wait();
                continue;
            };
            return self.send(child, &value, (actual, fault), (&before, started), below);
        }
        panic!("no moment of {phase:?} was hit")
    }

    fn send(
        &self,
        mut child: Child,
        value: &str,
        (phase, fault): (Phase, Fault),
        (before, started): (&[PathBuf], Instant),
        below: &mut impl FnMut(u64) -> u64,
    ) -> Outcome {
        let id = child.id().to_string();
        let signal = if fault == Fault::Kill { "-KILL" } else { interrupt() };
        send(signal, &id);
        let sent = Instant::now();
        if fault == Fault::TwoSignals {
            std::thread::sleep(Duration::from_millis(below(100)));
            send(signal, &id);
        }
        let status = child.wait().expect("the command ends");
        let until_end = sent.elapsed();
        let ended = Instant::now();
        let mut left = with_variable(value);
        while !left.is_empty() && ended.elapsed() < self.limit * 3 {
            std::thread::sleep(Duration::from_millis(5));
            left = with_variable(value);
        }
        let until_none = ended.elapsed();
        let mut folders = self.temporary_folders();
        folders.retain(|folder| !before.contains(folder));
        let code = status.code().unwrap_or(-1);
        let mut problems = Vec::new();
        let mut check = |holds: bool, problem: String| {
            if !holds {
                problems.push(format!("{phase:?}, {fault:?}: {problem}"));
            }
        };
        let names = || left.iter().map(|process| process.arguments.join(" ")).collect::<Vec<_>>();
        check(
            until_none < self.limit,
            format!("{until_none:?} after the end there is {:?}", names()),
        );
        if fault != Fault::Kill {
            // Before its `main` a process cannot handle a signal.
            let is_early = status.signal().is_some() && sent - started < self.limit / 10;
            let is_expected = code == 130 || code == self.summary() || is_early;
            check(is_expected, format!("exit code {code}"));
            check(until_end < self.limit, format!("it ended after {until_end:?}"));
            check(until_none < self.limit / 5, format!("processes ended {until_none:?} later"));
            check(folders.is_empty(), format!("{folders:?} is left"));
        }
        // The processes of a failed moment must not disturb the next one.
        left.iter().for_each(|process| send("-KILL", &process.id.to_string()));
        Outcome { phase, until_end, until_none, code, folders: folders.len() as u32, problems }
    }

    /// The exit code in the last line of the stream, if the signal came after the command had
    /// decided it.
    fn summary(&self) -> i32 {
        let text = std::fs::read_to_string(self.temporary.path().join("stdout"));
        let text = text.expect("the stream of results");
        let last = text.lines().last().unwrap_or_default();
        let summary: serde_json::Value = serde_json::from_str(last).unwrap_or_default();
        summary["exit_code"].as_i64().map_or(-2, |code| code as i32)
    }

    fn temporary_folders(&self) -> Vec<PathBuf> {
        let own = crate::fixture::target().join("functional/targets");
        let own = own.join(self.project.name()).join("memcheck");
        let named = |folder: PathBuf, prefixes: &'static [&'static str]| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(move |path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                prefixes.iter().any(|prefix| name.starts_with(prefix))
            })
        };
        let of_system = named(self.temporary.path().to_owned(), &["memcheck-"]);
        named(own, &["run-", "archive-"]).chain(of_system).collect()
    }

    pub(super) fn assert_next_command_cleans(&self) {
        self.ends(&[&["run", "--no-ci"][..], &JSON].concat(), &[100]);
        if self.project.has("app.tar.zst") {
            let archived = ["run", "--no-ci", "--archive-file", "app.tar.zst"];
            self.ends(&[&archived[..], &JSON].concat(), &[100]);
        }
        assert_eq!(self.temporary_folders(), Vec::<PathBuf>::new());
    }
}

fn send(signal: &str, id: &str) {
    // The process may have ended.
    let _ = Command::new("kill").args([signal, id]).stderr(std::process::Stdio::null()).status();
}

/// Returns the phase at that moment, and `None` if the command ended before it.
fn wait_for_moment(
    child: &mut Child,
    value: &str,
    wanted: Phase,
    pause: Duration,
) -> Option<Phase> {
    let deadline = Instant::now() + PATIENCE;
    let is_archive = wanted == Phase::Extract;
    let mut phase = match wanted {
        Phase::Merge | Phase::Extract => wanted,
        _ => Phase::Resolve,
    };
    let mut observe = |phase: &mut Phase| {
        let processes = with_variable(value);
        let others = processes.iter().filter(|process| process.id != child.id());
        *phase = others.filter_map(of_process).max().unwrap_or(match *phase {
            Phase::Run | Phase::Explain | Phase::Write => Phase::Write,
            Phase::Extract if is_archive => Phase::Extract,
            phase => phase,
        });
        matches!(child.try_wait(), Ok(None))
    };
    while phase != wanted && Instant::now() < deadline {
        if !observe(&mut phase) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(pause);
    observe(&mut phase).then_some(phase)
}

fn of_process(process: &Process) -> Option<Phase> {
    let program = process.arguments.first().map_or("", |program| program.as_str());
    if program.ends_with("cargo") && process.has("metadata") {
        Some(Phase::Resolve)
    } else if program.ends_with("cargo") || program.ends_with("rustc") {
        Some(Phase::Build)
    } else if process.has("--list") {
        Some(Phase::List)
    } else if process.has("--exact") && process.environment.contains("\"follow\":\"yes\"") {
        Some(Phase::Explain)
    } else if process.has("--exact") {
        Some(Phase::Run)
    } else {
        None
    }
}
