//! Builds the test executables, and runs their memory tests as ordinary tests.

use std::env::consts::OS;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::Message;
use memcheck_core::device::{Family, Request};
use memcheck_core::request::variables;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::{Entry, Listing};

use super::NotHere;
use crate::invocation::cli::RunArgs;
use crate::invocation::values::{NoTests, RunIgnored};
use crate::system::error::Failure;
use crate::system::printing::{eprint_line, print_line};

/// The flags that have their meaning here, besides cargo's own, which all have it.
const KEPT: &[&str] =
    &["device", "exact", "run-ignored", "no-tests", "no-capture", "fail-fast", "color"];

/// Runs the memory tests that `args` selects. `stated` are the long names of its flags that are not
/// cargo's.
pub(super) fn run(args: &RunArgs, stated: &[String]) -> Result<u8, Failure> {
    refuse_gpus(&args.select.device)?;
    let without_effect = stated.iter().filter(|flag| !KEPT.contains(&flag.as_str()));
    let without_effect: Vec<String> = without_effect.map(|flag| format!("`--{flag}`")).collect();
    if !without_effect.is_empty() {
        eprint_line!("note: without effect on {OS}: {}", without_effect.join(", "));
    }
    let Some(executables) = build(args)? else { return Ok(exit::BUILD) };
    let (mut count, mut has_failed) = (0, false);
    for executable in executables {
        let tests: Vec<Entry> =
            listing(&executable).into_iter().filter(|test| is_selected(args, test)).collect();
        let Some(first) = tests.first() else { continue };
        count += tests.len();
        let mut command = Command::new(&executable);
        command.args(tests.iter().map(|test| &test.name)).args(["--exact", "--include-ignored"]);
        command.args(&args.libtest).current_dir(&first.manifest_dir);
        if args.schedule.no_capture {
            command.arg("--nocapture");
        }
        has_failed |= !command.status().map_err(anyhow::Error::from)?.success();
        if has_failed && args.schedule.fail_fast {
            break;
        }
    }
    Ok(conclude(count, has_failed, args.schedule.no_tests))
}

fn conclude(count: usize, has_failed: bool, no_tests: NoTests) -> u8 {
    let tests =
        if count == 1 { "1 memory test".to_owned() } else { format!("{count} memory tests") };
    if has_failed {
        eprint_line!("failed: at least one of {tests} failed as an ordinary test");
        return exit::FAILED;
    }
    if count == 0 && no_tests == NoTests::Fail {
        eprint_line!("error: no memory test was selected");
        return exit::NO_TESTS;
    }
    print_line!("ok: {tests} passed as ordinary tests");
    eprint_line!(
        "note: not-measured: memcheck has no instrument on {OS}, so that limits and baselines were \
         not compared: run it on Linux too"
    );
    exit::OK
}

fn refuse_gpus(devices: &[String]) -> Result<(), NotHere> {
    for device in devices.iter().flat_map(|list| list.split(',')) {
        let request = device.trim().parse::<Request>();
        if request.is_ok_and(|request| request.family() == Some(Family::Cuda)) {
            return Err(NotHere::Device(device.trim().to_owned()));
        }
    }
    Ok(())
}

/// The test executables; `None` if the build has failed, whose errors cargo has printed.
fn build(args: &RunArgs) -> Result<Option<Vec<PathBuf>>, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let options = &args.cargo;
    let mut command = Command::new(cargo);
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    command.args(options.for_test());
    if !options.names_targets() {
        command.arg("--tests");
    }
    for (flag, values) in [("--package", &options.packages), ("--exclude", &options.exclude)] {
        command.args(values.iter().flat_map(|value| [flag, value]));
    }
    if options.workspace {
        command.arg("--workspace");
    }
    if let Some(folder) = &options.target_dir {
        command.arg("--target-dir").arg(folder);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(anyhow::Error::from)?;
    let mut executables = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(stdout)) {
            if let Message::CompilerArtifact(artifact) = message.map_err(anyhow::Error::from)?
                && artifact.profile.test
            {
                executables.extend(artifact.executable.map(PathBuf::from));
            }
        }
    }
    let status = child.wait().map_err(anyhow::Error::from)?;
    Ok(status.success().then_some(executables))
}

/// The memory tests of an executable; empty if it does not link memcheck.
fn listing(executable: &Path) -> Vec<Entry> {
    let listed = Command::new(executable)
        .args(["--list", "--format", "terse"])
        .env(variables::LIST, "1")
        .stderr(Stdio::null())
        .output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let lines = text.unwrap_or_default();
    let listing = lines.lines().rev().find_map(|line| serde_json::from_str::<Listing>(line).ok());
    listing.map(|listing| listing.tests).unwrap_or_default()
}

fn is_selected(args: &RunArgs, test: &Entry) -> bool {
    let is_named = |filter: &String| match args.select.exact {
        true => test.name == *filter,
        false => test.name.contains(filter),
    };
    let filters = &args.select.filters;
    let is_wanted = match args.select.run_ignored {
        RunIgnored::Default => !test.ignored,
        RunIgnored::Only => test.ignored,
        RunIgnored::All => true,
    };
    is_wanted && (filters.is_empty() || filters.iter().any(is_named))
}
