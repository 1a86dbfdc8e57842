//! `cargo memcheck doctor`: checks the toolchain, the devices and the configuration, and plants a leak that must be
//! found. It prints the results on stdout.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use memcheck_core::cards::{CARDS, Card};
use memcheck_core::request::variables;
use memcheck_core::size::both;
use memcheck_core::wire::exit;
use serde::Serialize;

use super::planted;
use crate::build::toolchain::gpu;
use crate::build::workspace::{Workspace, cargo};
use crate::invocation::cli::DoctorArgs;
use crate::invocation::config::Configuration;
use crate::invocation::options::environment;
use crate::invocation::values::{Format, Verbosity};
use crate::presentation::presenters::style;
use crate::system::error::Failure;
use crate::system::gpus;
use crate::system::launcher::Launcher;
use crate::system::printing::{print, say};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CheckState {
    /// Available.
    Ok,
    /// Not available. A command that needs it reports an error.
    Absent,
    /// Broken.
    Failed,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "check")]
struct Check {
    name: &'static str,
    state: CheckState,
    detail: String,
}

/// Prints the results of the checks, one by one.
struct Answers {
    format: Format,
    verbosity: Verbosity,
}

impl Answers {
    fn tell(&self, name: &'static str, state: CheckState, detail: String) {
        let check = Check { name, state, detail };
        if self.verbosity == Verbosity::Quiet && state != CheckState::Failed {
            return;
        }
        match self.format {
            Format::Json => {
                let line = serde_json::to_string(&check).expect("a check has only text");
                print(&format!("{line}\n"));
            }
            Format::Human => print(&line(&check)),
        }
    }

    /// Prints a description of something that is available, or the reason why it is not.
    fn tell_or_why(&self, name: &'static str, found: Result<String, String>) {
        match found {
            Ok(text) => self.tell(name, CheckState::Ok, text),
            Err(why) => self.tell(name, CheckState::Absent, why),
        }
    }

    fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }
}

fn there(is_there: bool) -> CheckState {
    if is_there { CheckState::Ok } else { CheckState::Absent }
}

/// Runs all checks, and plants a leak.
pub(super) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let answers =
        Answers { format: args.output.form.message_format, verbosity: args.output.verbosity() };
    machine(&answers);
    surroundings(&answers);
    let workspace = match Workspace::load(&args.cargo) {
        Ok(workspace) => workspace,
        Err(failure) => {
            let why = failure.to_string().lines().last().unwrap_or_default().trim().to_owned();
            answers.tell("workspace", CheckState::Absent, why);
            return Ok(unproven());
        }
    };
    let has_tests = packages(&answers, &workspace)?;
    if args.no_run {
        return Ok(exit::OK);
    }
    if !has_tests {
        return Ok(unproven());
    }
    let mut exit_code = exit::OK;
    for answer in planted::run(args, &workspace)? {
        let (state, text) = match answer.result {
            Ok(text) => (CheckState::Ok, text),
            Err(why) => (CheckState::Failed, why),
        };
        if state == CheckState::Failed {
            exit_code = exit::NOT_MEASURED;
        }
        answers.tell("planted leak", state, format!("{}: {text}", answer.leg));
    }
    Ok(exit_code)
}

/// Checks programs and devices.
fn machine(answers: &Answers) {
    let verbose = answers.is_verbose();
    for (name, program) in [("cargo", cargo()), ("rustc", rustc()), ("cc", "cc".into())] {
        answers.tell_or_why(name, version(&program, verbose));
    }
    answers.tell_or_why("gpu", gpu::gpus(&Launcher::None).map(|gpus| gpus::names(&gpus)));
    answers.tell_or_why("nvcc", gpu::nvcc());
    let card = |card: &Card| match verbose {
        true => format!("{} ({})", card.id, both(card.bytes)),
        false => card.id.to_owned(),
    };
    let cards: Vec<String> = CARDS.iter().map(card).collect();
    answers.tell("simulated cards", CheckState::Ok, cards.join(if verbose { ", " } else { " " }));
}

/// Checks for CI, and prints the variables.
fn surroundings(answers: &Answers) {
    let ci = is_ci::cached();
    answers.tell("ci", there(ci), if ci { "detected" } else { "not detected" }.to_owned());
    for variable in variables::all() {
        let name = variable.name;
        match environment(name) {
            Some(value) => answers.tell("environment", CheckState::Ok, format!("{name}={value}")),
            None if answers.is_verbose() => {
                answers.tell("environment", CheckState::Absent, format!("{name} is not set"));
            }
            None => {}
        }
    }
}

/// Checks the workspace. Returns true if one of its packages has memory tests.
fn packages(answers: &Answers, workspace: &Workspace) -> Result<bool, Failure> {
    answers.tell("workspace", CheckState::Ok, workspace.root().display().to_string());
    let named = environment(variables::CONFIG_FILE.name).map(PathBuf::from);
    let configuration = Configuration::read(workspace.root(), workspace.root(), named.as_deref())?;
    let path = configuration.path.as_ref().map(|path| path.display().to_string());
    let path = path.ok_or_else(|| "none; the defaults apply".to_owned());
    answers.tell_or_why("configuration", path);
    let packages = workspace.test_packages();
    let names: Vec<&str> = packages.iter().map(|package| package.name()).collect();
    let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    answers.tell("packages with memory tests", there(!names.is_empty()), listed);
    let candle = packages.iter().find_map(|package| package.candle.clone());
    answers.tell_or_why("candle-core", candle.ok_or_else(|| "not found".to_owned()));
    Ok(!packages.is_empty())
}

/// Warns that no leak was planted, so that the measurement is not proven to work on this machine.
fn unproven() -> u8 {
    say!(
        "{} no package here has memory tests, so no leak was planted (--no-run accepts that)",
        style::warning("warning:")
    );
    exit::NO_TESTS
}

fn line(check: &Check) -> String {
    let mark = match check.state {
        CheckState::Ok => "ok",
        CheckState::Absent => "--",
        CheckState::Failed => "FAILED",
    };
    format!("{mark:>6}  {}: {}\n", check.name, check.detail)
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Returns the version that a program prints: the first line of it, or all lines.
fn version(program: &std::ffi::OsStr, all: bool) -> Result<String, String> {
    let shown = program.to_string_lossy();
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = if all { text.trim_end().lines().count() } else { 1 };
    let lines: Vec<&str> = text.lines().take(said).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        Err(format!("{shown} --version prints no text"))
    } else {
        Ok(lines.join("; "))
    }
}
