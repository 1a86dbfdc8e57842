//! `cargo memcheck doctor`: what is there, what is not, and a planted leak
//! that must be found. The answers are on stdout.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use memcheck_core::cards::{CARDS, Card};
use memcheck_core::size::both;
use memcheck_core::{exit, variables};
use serde::Serialize;

use super::{planted, print};
use crate::cli::{DoctorArgs, FormatFlag};
use crate::config::Configuration;
use crate::error::Failure;
use crate::gpus;
use crate::launcher::Launcher;
use crate::options::{Verbosity, environment};
use crate::present::{say, style};
use crate::toolchain::gpu;
use crate::workspace::{Workspace, cargo};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// There, and as it should be.
    Ok,
    /// Not there; what needs it will say so.
    Absent,
    /// Not as it should be.
    Failed,
}

/// One line of the answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "check")]
struct Check {
    name: &'static str,
    state: State,
    detail: String,
}

/// Looks at everything, and plants a leak.
pub(super) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let format = args.output.form.message_format;
    let verbosity = Verbosity::of(&args.output);
    let verbose = verbosity == Verbosity::Verbose;
    let tell = |name, state, detail: String| {
        let check = Check { name, state, detail };
        if verbosity == Verbosity::Quiet && state != State::Failed {
            return;
        }
        match format {
            FormatFlag::Json => {
                let line = serde_json::to_string(&check).expect("a check is text");
                print(&format!("{line}\n"));
            }
            FormatFlag::Human => print(&line(&check)),
        }
    };
    let state = |there: bool| if there { State::Ok } else { State::Absent };
    let or_why = |result: Result<String, String>| match result {
        Ok(text) => (State::Ok, text),
        Err(why) => (State::Absent, why),
    };
    for (name, program) in [("cargo", cargo()), ("rustc", rustc()), ("cc", "cc".into())] {
        let (state, text) = or_why(version(&program, verbose));
        tell(name, state, text);
    }
    let (known, text) = or_why(gpu::gpus(&Launcher::None).map(|gpus| gpus::names(&gpus)));
    tell("gpu", known, text);
    let (known, text) = or_why(gpu::nvcc());
    tell("nvcc", known, text);
    let card = |card: &Card| match verbose {
        true => format!("{} ({})", card.id, both(card.bytes)),
        false => card.id.to_owned(),
    };
    let cards: Vec<String> = CARDS.iter().map(card).collect();
    tell("simulated cards", State::Ok, cards.join(if verbose { ", " } else { " " }));
    let ci = is_ci::cached();
    tell("ci", state(ci), if ci { "detected" } else { "not detected" }.to_owned());
    for variable in variables::all() {
        match environment(variable.name) {
            Some(value) => tell("environment", State::Ok, format!("{}={value}", variable.name)),
            None if verbose => {
                tell("environment", State::Absent, format!("{} is not set", variable.name));
            }
            None => {}
        }
    }

    let workspace = match Workspace::load(&args.cargo) {
        Ok(workspace) => workspace,
        Err(failure) => {
            let why = failure.to_string().lines().last().unwrap_or_default().trim().to_owned();
            tell("workspace", State::Absent, why);
            return Ok(unproven());
        }
    };
    tell("workspace", State::Ok, workspace.root().display().to_string());
    let named = environment(variables::CONFIG_FILE.name).map(PathBuf::from);
    let configuration = Configuration::read(workspace.root(), workspace.root(), named.as_deref())?;
    match &configuration.path {
        Some(path) => tell("configuration", State::Ok, path.display().to_string()),
        None => tell("configuration", State::Absent, "none; the defaults hold".to_owned()),
    }
    let packages = workspace.test_packages();
    let names: Vec<&str> = packages.iter().map(|package| package.name()).collect();
    let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    tell("packages with memory tests", state(!names.is_empty()), listed);
    let candle = packages.iter().find_map(|package| package.candle.clone());
    tell("candle-core", state(candle.is_some()), candle.unwrap_or_else(|| "not there".to_owned()));
    if args.no_run {
        return Ok(exit::OK);
    }
    if packages.is_empty() {
        return Ok(unproven());
    }
    let mut exit_code = exit::OK;
    for answer in planted::run(args, &workspace)? {
        let (state, text) = match answer.result {
            Ok(text) => (State::Ok, text),
            Err(why) => (State::Failed, why),
        };
        if state == State::Failed {
            exit_code = exit::NOT_MEASURED;
        }
        tell("planted leak", state, format!("{}: {text}", answer.leg));
    }
    Ok(exit_code)
}

/// Nothing shows that the instrument works here.
fn unproven() -> u8 {
    say!(
        "{} no package with memory tests here, so no leak was planted (--no-run is content with that)",
        style::warning("warning:")
    );
    exit::NO_TESTS
}

fn line(check: &Check) -> String {
    let mark = match check.state {
        State::Ok => "ok",
        State::Absent => "--",
        State::Failed => "FAILED",
    };
    format!("{mark:>6}  {}: {}\n", check.name, check.detail)
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// What a program says of its version: the first line, or all of it.
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
    if lines.is_empty() { Err(format!("{shown} says nothing")) } else { Ok(lines.join("; ")) }
}
