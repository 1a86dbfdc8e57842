//! `cargo memcheck doctor`: checks the toolchain, the devices and the configuration, and plants a
//! leak that must be found. It prints the results on stdout, and stores the proof for later runs.

use std::path::PathBuf;
use std::process::Command;

use memcheck_core::cards::{CARDS, Card};
use memcheck_core::request::variables;
use memcheck_core::size::both;
use memcheck_core::wire::exit;
use serde::Serialize;

use super::planted::{self, LeakCheck};
use crate::build::toolchain::gpu;
use crate::build::workspace::{Workspace, cargo};
use crate::execution::proof::{self, ProofResult, ProofState, Versions};
use crate::invocation::cli::DoctorArgs;
use crate::invocation::config::Configuration;
use crate::invocation::options::environment;
use crate::invocation::values::{CargoOptions, Format, Verbosity};
use crate::presentation::presenters::{json, style};
use crate::system::error::Failure;
use crate::system::gpus;
use crate::system::launcher::Launcher;
use crate::system::printing::{eprint_line, print, print_raw};
use crate::system::process::{self, ShortRun};

/// The checks that a proof consists of, in the order of [`ProofEvidence::lines`].
///
/// [`ProofEvidence::lines`]: crate::execution::proof::Evidence::lines
const EVIDENCE: [&str; 3] = ["canary", "planted leak", "exactness"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CheckState {
    Ok,
    /// A command that needs it reports an error.
    Absent,
    Failed,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "check")]
struct Check {
    name: &'static str,
    state: CheckState,
    detail: String,
}

struct CheckPrinter {
    format: Format,
    verbosity: Verbosity,
}

impl CheckPrinter {
    fn print_check(&self, name: &'static str, state: CheckState, detail: String) {
        let check = Check { name, state, detail };
        if self.verbosity == Verbosity::Quiet && state != CheckState::Failed {
            return;
        }
        match self.format {
            Format::Json => {
                print_raw(&format!("{}\n", json::text(&check)));
            }
            Format::Human => print(&line(&check)),
        }
    }

    fn print_result(&self, name: &'static str, found: Result<String, String>) {
        match found {
            Ok(text) => self.print_check(name, CheckState::Ok, text),
            Err(why) => self.print_check(name, CheckState::Absent, why),
        }
    }

    fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }
}

fn presence(is_there: bool) -> CheckState {
    if is_there { CheckState::Ok } else { CheckState::Absent }
}

pub(super) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let printer = CheckPrinter {
        format: args.output.form.message_format,
        verbosity: args.output.verbosity(),
    };
    machine(&printer);
    surroundings(&printer);
    let workspace = match Workspace::load(&args.cargo) {
        Ok(workspace) => workspace,
        Err(failure) => {
            let why = failure.to_string().lines().last().unwrap_or_default().trim().to_owned();
            printer.print_check("workspace", CheckState::Absent, why);
            return Ok(unproven());
        }
    };
    let has_tests = packages(&printer, &workspace)?;
    let one_candle = candles(&printer, &workspace);
    if args.no_run {
        earlier_proofs(&printer, &workspace, &args.cargo);
        return Ok(if one_candle { exit::OK } else { exit::BUILD });
    }
    if !one_candle {
        return Ok(exit::BUILD);
    }
    if !has_tests {
        return Ok(unproven());
    }
    let mut exit_code = exit::OK;
    for LeakCheck { proof, lost } in planted::run(args, &workspace)? {
        let device = &proof.device;
        match &proof.result {
            ProofResult::Evidence(evidence) => {
                for (name, text) in EVIDENCE.into_iter().zip(evidence.lines()) {
                    printer.print_check(name, CheckState::Ok, format!("{device}: {text}"));
                }
            }
            ProofResult::Failure(why) => {
                exit_code = exit::NOT_MEASURED;
                let detail = format!("{device}: {why}");
                printer.print_check("planted leak", CheckState::Failed, detail);
            }
        }
        if let Some(error) = lost {
            let word = style::warning("warning:");
            eprint_line!("{word} the proof cannot be stored for later runs: {error:#}");
        }
    }
    Ok(exit_code)
}

/// The proofs of earlier runs, each with its present state.
fn earlier_proofs(printer: &CheckPrinter, workspace: &Workspace, cargo: &CargoOptions) {
    let proofs = proof::read(&workspace.own_directory(), || Versions::of(workspace, cargo));
    for (device, proof) in &proofs {
        let state = match proof.state() {
            ProofState::Current => CheckState::Ok,
            ProofState::Stale => CheckState::Absent,
            ProofState::Failed => CheckState::Failed,
        };
        printer.print_check("proof", state, format!("{device}: {}", proof.text()));
    }
    if proofs.is_empty() {
        let detail = "no planted leak was run here: run `cargo memcheck doctor`".to_owned();
        printer.print_check("proof", CheckState::Absent, detail);
    }
}

fn machine(printer: &CheckPrinter) {
    let verbose = printer.is_verbose();
    for (name, program) in [("cargo", cargo()), ("rustc", rustc()), ("cc", "cc".into())] {
        printer.print_result(name, version(&program, verbose));
    }
    printer.print_result("gpu", gpu::gpus(&Launcher::None).map(|gpus| gpus::names(&gpus)));
    printer.print_result("nvcc", gpu::nvcc());
    let cards = match (verbose, printer.format) {
        (true, _) => {
            let card = |card: &Card| format!("{} ({})", card.id, both(card.bytes));
            CARDS.iter().map(card).collect::<Vec<_>>().join(", ")
        }
        (false, Format::Json) => CARDS.iter().map(|card| card.id).collect::<Vec<_>>().join(" "),
        (false, Format::Human) => {
            format!("{}, named with their memory by --verbose", CARDS.len())
        }
    };
    printer.print_check("simulated cards", CheckState::Ok, cards);
}

fn surroundings(printer: &CheckPrinter) {
    let ci = is_ci::cached();
    printer.print_check(
        "ci",
        presence(ci),
        if ci { "detected" } else { "not detected" }.to_owned(),
    );
    for variable in variables::all() {
        let name = variable.name;
        match environment(name) {
            Some(value) => {
                printer.print_check("environment", CheckState::Ok, format!("{name}={value}"))
            }
            None if printer.is_verbose() => {
                printer.print_check(
                    "environment",
                    CheckState::Absent,
                    format!("{name} is not set"),
                );
            }
            None => {}
        }
    }
}

fn packages(printer: &CheckPrinter, workspace: &Workspace) -> Result<bool, Failure> {
    printer.print_check("workspace", CheckState::Ok, workspace.root().display().to_string());
    let named = environment(variables::CONFIG_FILE.name).map(PathBuf::from);
    let configuration = Configuration::read(workspace.root(), workspace.root(), named.as_deref())?;
    let path = configuration.path.as_ref().map(|path| path.display().to_string());
    let path = path.ok_or_else(|| "none; the defaults apply".to_owned());
    printer.print_result("configuration", path);
    let packages = workspace.test_packages();
    let names: Vec<&str> = packages.iter().map(|package| package.name()).collect();
    let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    printer.print_check("packages with memory tests", presence(!names.is_empty()), listed);
    let candle = packages.iter().find_map(|package| package.candle.clone());
    let candle = match candle {
        None if !packages.is_empty() => Ok("none: memcheck-runtime is built without it".to_owned()),
        candle => candle.ok_or_else(|| "not found".to_owned()),
    };
    printer.print_result("candle-core", candle);
    Ok(!packages.is_empty())
}

/// False if a package uses another candle than the runtime, so that its tests cannot be built.
fn candles(printer: &CheckPrinter, workspace: &Workspace) -> bool {
    let others = workspace.other_candles(&workspace.test_packages());
    for other in &others {
        let state = if other.is_only { CheckState::Failed } else { CheckState::Absent };
        let detail = format!("{}\n{}", other.message(), other.hint());
        printer.print_check("one candle", state, detail);
    }
    !others.iter().any(|other| other.is_only)
}

/// Without a planted leak, the measurement is not proven to work on this machine.
fn unproven() -> u8 {
    eprint_line!(
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
    format!("{mark:>6}  {}: {}\n", check.name, check.detail.replace('\n', "\n        "))
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// The first line of it, or all lines.
fn version(program: &std::ffi::OsStr, all: bool) -> Result<String, String> {
    let shown = program.to_string_lossy();
    let mut command = Command::new(program);
    command.arg("--version");
    let output =
        process::short(&command, ShortRun::TRUSTED).map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines_to_print = if all { text.trim_end().lines().count() } else { 1 };
    let lines: Vec<&str> =
        text.lines().take(lines_to_print).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        Err(format!("{shown} --version prints no text"))
    } else {
        Ok(lines.join("; "))
    }
}
