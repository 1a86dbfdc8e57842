//! Adds memcheck to a package as its users do, and counts the edits: places in files that change,
//! and commands of cargo that change the lock file.

use crate::fixture::{Project, Run, command, workspace};
use crate::which_candle::{self, patch};

use super::package::{cargo_of, choose_toolchain};
use super::rows::Shape;

const WITHOUT_CANDLE: &str = ", default-features = false, features = [\"global-allocator\"]";
/// For a package with its own allocator.
const OWN_ALLOCATOR: &str = ", default-features = false, features = [\"candle\"]";

/// The edits that a package needed.
pub(super) struct Edits {
    /// The kinds, as in the table.
    pub(super) made: Vec<&'static str>,
    /// Commands of cargo that changed the lock file.
    pub(super) commands: Vec<String>,
    /// Lines of files that are new or changed.
    pub(super) lines: usize,
}

/// Runs the memory tests on a device, as a user does.
pub(super) fn run(shape: &Shape, project: &Project, device: &str) -> Run {
    let mut all = vec!["run", "--device", device, "--message-format", "json", "--no-ci"];
    if shape.has("optional") {
        all.extend(["--features", "local"]);
    }
    let mut command = command(project.path(), &all);
    choose_toolchain(shape, &mut command);
    Run::from_output(&command.output().expect("cargo-memcheck runs"))
}

/// The dependency on memcheck-runtime.
fn entry(keys: &str) -> String {
    let runtime = workspace().join("memcheck-runtime");
    format!("memcheck-runtime = {{ path = \"{}\"{keys} }}\n", runtime.display())
}

fn change(project: &Project, file: &str, from: &str, to: &str) {
    let text = project.read(file);
    let changed = text.replacen(from, to, 1);
    assert_ne!(text, changed, "{file} has no {from}");
    project.write(file, &changed);
}

/// Runs `cargo update`, and returns the command.
fn update(shape: &Shape, project: &Project, arguments: &str) -> String {
    let mut command = cargo_of(shape, project);
    command.arg("update").args(arguments.split(' '));
    let output = command.output().expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo update {arguments}: {stderr}");
    format!("cargo update {arguments}")
}

/// Adds memcheck, follows the messages of refused runs, and returns the first run on the CPU that
/// measured.
pub(super) fn add_memcheck(shape: &Shape, project: &Project) -> (Edits, Run) {
    let files = ["Cargo.toml", "src/lib.rs"];
    let before = files.map(|file| project.read(file));
    let (mut made, mut commands) = (Vec::new(), Vec::new());
    if shape.has("update") {
        // The project's requirement accepts a version that memcheck accepts.
        commands.push(update(shape, project, "-p candle-core -p candle-nn"));
        made.push("lock");
    }
    let mut keys = "";
    if shape.has("allocator") {
        keys = OWN_ALLOCATOR;
        change(
            project,
            "src/lib.rs",
            "ALLOC: Own = Own",
            "ALLOC: memcheck_runtime::Tracking<Own> = memcheck_runtime::Tracking::new(Own)",
        );
        made.push("allocator");
    }
    let has_table = project.read("Cargo.toml").contains("[dev-dependencies]\n");
    let table = "[dev-dependencies]\n";
    match has_table {
        true => change(project, "Cargo.toml", table, &format!("{table}{}", entry(keys))),
        false => change(
            project,
            "Cargo.toml",
            "[profile.dev]",
            &format!("{table}{}\n[profile.dev]", entry(keys)),
        ),
    }
    made.push("dependency");
    let mut tries = 0;
    let run = loop {
        let run = run(shape, project, "cpu");
        let text = run.stderr.clone();
        if ![101, 102].contains(&run.code) || tries == 3 {
            break run;
        }
        tries += 1;
        if text.contains("so that it cannot use") {
            change(project, "Cargo.toml", &entry(keys), &entry(WITHOUT_CANDLE));
            keys = WITHOUT_CANDLE;
        } else if text.contains("[patch.crates-io]\n") {
            let manifest = project.read("Cargo.toml");
            project.write("Cargo.toml", &format!("{manifest}\n{}", patch(&text)));
            made.push("patch");
        } else if text.contains("cargo update -p") {
            // Not offline, because this machine can lack the version.
            commands.push(update(shape, project, &which_candle::update(&text)));
            made.push("lock");
        } else {
            break run;
        }
    };
    let lines = files.iter().zip(before).map(|(file, before)| {
        let mut old: Vec<&str> = before.lines().collect();
        let now = project.read(file);
        let is_new = |line: &&str| match old.iter().position(|known| known == line) {
            Some(at) => {
                old.swap_remove(at);
                false
            }
            None => !line.is_empty(),
        };
        now.lines().filter(is_new).count()
    });
    let lines = lines.sum();
    (Edits { made, commands, lines }, run)
}
