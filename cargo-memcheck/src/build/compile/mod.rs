//! Builds the test executables of one leg with cargo. A leg whose features differ from those of the
//! user's own builds has a separate target directory, so that `target/debug/app` stays the user's.

mod cargo;
mod directories;
mod environment;
mod optimization;
mod program;
mod progress;
mod proven;
mod repeated;

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use anstream::ColorChoice;
use cargo_metadata::{Artifact, BuildScript, Target, TargetKind};
use memcheck_core::wire::exit;
use serde::{Deserialize, Serialize};

use cargo::CargoOutput;
use progress::Meter;
use repeated::Shown;

pub(crate) use directories::target_directory;
pub(crate) use program::{Program, ProgramError, ProgramKind};

use crate::build::leg::DeviceKind;
use crate::build::toolchain::Toolkit;
use crate::build::workspace::{TestPackage, Workspace};
use crate::invocation::options::Options;
use crate::invocation::values::CargoOptions;
use crate::system::binary::Binary;
use crate::system::error::{CommandError, Failure};
use crate::system::process;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("the build for {built} failed")]
    Failed {
        built: &'static str,
        /// The features that the command has switched on by itself.
        own: Vec<String>,
    },
    #[error("the build for {built} failed: the linker does not find `{function}`")]
    Undefined { built: &'static str, function: String, is_simulated: bool },
    #[error("the build for {0} failed: cargo: {1}")]
    Killed(&'static str, ExitStatus),
    #[error("cargo: {0}")]
    Cargo(std::io::Error),
    #[error("{path}: {1}", path = .0.display())]
    Records(PathBuf, std::io::Error),
    #[error("cargo does not build {0} again, although {1}")]
    Stale(String, String),
}

impl CommandError for BuildError {
    fn exit_code(&self) -> u8 {
        exit::BUILD
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Undefined { function, is_simulated: true, .. } => Some(format!(
                "no source that was compiled for the simulated device defines `{function}`: if it \
                 is in a library of CUDA code, compile its `.cu` file in the build script with \
                 `nvcc`, or use `--device cuda` with a CUDA toolkit"
            )),
            Self::Stale(..) => Some(
                "remove the target directory, and check the clock of this machine and of its disks"
                    .to_owned(),
            ),
            Self::Records(path, _) => Some(format!(
                "the command keeps records of builds in {}: make it writable, or choose another \
                 directory with `--target-dir` or `CARGO_BUILD_BUILD_DIR`",
                path.display()
            )),
            Self::Killed(_, status) => process::advice(*status),
            Self::Failed { own, .. } if !own.is_empty() => Some(format!(
                "this build has {}, because it is for a GPU: `--no-package-cuda` builds without",
                own.join(", ")
            )),
            Self::Undefined { .. } | Self::Failed { .. } | Self::Cargo(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum BuildGoal<'a> {
    Tests,
    Program(&'a Program),
    Benches(&'a [Program]),
}

impl<'a> BuildGoal<'a> {
    pub(crate) fn described(self) -> String {
        match self {
            Self::Tests => "the tests".to_owned(),
            Self::Program(program) => format!("`{}`", program.name),
            Self::Benches(_) => "the benches".to_owned(),
        }
    }

    fn arguments(self) -> Vec<&'static str> {
        match self {
            Self::Tests => vec!["test", "--no-run"],
            Self::Program(_) | Self::Benches(_) => vec!["build"],
        }
    }

    fn targets(self, cargo: &CargoOptions) -> Vec<&'a str> {
        match self {
            // Without a selection `cargo test` compiles the examples too, and runs none of them.
            Self::Tests if !cargo.names_targets() => vec!["--tests"],
            Self::Tests => Vec::new(),
            Self::Program(program) => program.arguments(),
            Self::Benches(benches) => benches.iter().flat_map(Program::arguments).collect(),
        }
    }

    fn includes(self, artifact: &Artifact) -> bool {
        match self {
            Self::Tests => artifact.profile.test,
            Self::Program(program) => program.matches(&artifact.target),
            Self::Benches(benches) => benches.iter().any(|bench| bench.matches(&artifact.target)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotBuilt {
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) required: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Built {
    /// Sorted by id.
    pub(crate) binaries: Vec<Binary>,
    pub(crate) not_built: Vec<NotBuilt>,
}

fn features(packages: &[TestPackage], kind: DeviceKind) -> Vec<String> {
    let of_runtime = |package: &TestPackage| match kind {
        DeviceKind::Cpu => Vec::new(),
        DeviceKind::Sim => package.cuda_features("sim"),
        DeviceKind::Cuda => package.cuda_features("cuda"),
    };
    let all = packages.iter().flat_map(|it| [of_runtime(it), it.own_features(kind)].concat());
    let mut features: Vec<String> = all.collect();
    features.sort();
    features.dedup();
    features
}

fn command(
    workspace: &Workspace,
    packages: &[TestPackage],
    options: &Options,
    goal: BuildGoal<'_>,
    kind: DeviceKind,
    toolkit: Option<&Toolkit>,
) -> Command {
    let mut command = Command::new(crate::build::workspace::cargo());
    // Cargo itself prints the diagnostics, so that stdout has only artifacts to parse.
    command.args(goal.arguments()).args(["--message-format", "json-render-diagnostics"]);
    for package in packages {
        // The graph of the leg can have other packages with the same name.
        command.args(["--package", &package.package.id.repr]);
    }
    command.args(options.cargo.for_test());
    command.args(goal.targets(&options.cargo));
    let features = features(packages, kind);
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    for setting in optimization::settings(workspace, kind) {
        command.args(["--config", &setting]);
    }
    directories::set(&mut command, workspace, kind);
    if let Some(toolkit) = toolkit {
        toolkit.apply(&mut command);
    }
    command
}

fn failed(
    built: &'static str,
    status: ExitStatus,
    meter: &Meter,
    kind: DeviceKind,
    packages: &[TestPackage],
) -> BuildError {
    let is_simulated = kind == DeviceKind::Sim;
    match meter.undefined() {
        Some(function) => BuildError::Undefined { built, function, is_simulated },
        None if status.signal().is_some() => BuildError::Killed(built, status),
        None => {
            let by_default = packages.iter().filter(|package| package.has_own_by_default(kind));
            let own = by_default.flat_map(|package| package.own_features(kind)).collect();
            BuildError::Failed { built, own }
        }
    }
}

/// Progress messages call the build `subject`.
pub(crate) fn build(
    workspace: &Workspace,
    packages: &[TestPackage],
    options: &Options,
    goal: BuildGoal<'_>,
    (kind, subject): (DeviceKind, &str),
    toolkit: Option<&Toolkit>,
) -> Result<Built, Failure> {
    let what = match kind {
        DeviceKind::Cpu => "the CPU",
        DeviceKind::Sim => "the simulated CUDA device",
        DeviceKind::Cuda => "the CUDA device",
    };
    let run = || {
        let shown = Shown::new(&workspace.members());
        let meter = Meter::new(subject, options.reporting.verbosity, shown);
        let mut command = command(workspace, packages, options, goal, kind, toolkit);
        command.args(["--color", color()]);
        let output = cargo::run(command, goal, &meter)?;
        let status = output.status;
        meter.finish(status.success());
        if status.success() {
            Ok(output)
        } else {
            Err(Failure::from(failed(what, status, &meter, kind, packages)))
        }
    };
    let CargoOutput { artifacts, scripts, .. } = proven::build(workspace, kind, options, run)?;
    let scripts: HashMap<&str, &BuildScript> =
        scripts.iter().map(|script| (script.package_id.repr.as_str(), script)).collect();
    let mut built = Built::default();
    let linked: Vec<PathBuf> = scripts
        .values()
        .flat_map(|script| &script.linked_paths)
        .filter_map(|path| environment::library_path(path.as_str(), workspace))
        .collect();
    for (index, package) in packages.iter().enumerate() {
        let of_package = || artifacts.iter().filter(|a| a.package_id == package.package.id);
        let script = scripts.get(package.package.id.repr.as_str()).copied();
        built.binaries.extend(of_package().map(|artifact| {
            let path = artifact.executable.clone().expect("filtered above").into_std_path_buf();
            let environment = environment::for_test(package, script, artifact, &linked);
            let id = binary_id(package.name(), &artifact.target);
            Binary::new(id, index, path, environment)
        }));
        let left_out = package.package.targets.iter().filter(|target| {
            matches!(goal, BuildGoal::Tests)
                && wanted(&options.cargo, target)
                && !target.required_features.is_empty()
                && of_package()
                    .all(|a| a.target.name != target.name || a.target.kind != target.kind)
        });
        built.not_built.extend(left_out.map(|target| NotBuilt {
            package: package.name().to_owned(),
            target: target.name.clone(),
            required: target.required_features.clone(),
        }));
    }
    built.binaries.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(built)
}

/// This process's stderr decides, because cargo's own is a pipe.
fn color() -> &'static str {
    match anstream::AutoStream::choice(&std::io::stderr()) {
        ColorChoice::Never => "never",
        ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => "always",
    }
}

/// Targets that a flag names are excluded, because cargo itself reports an error for them.
fn wanted(flags: &CargoOptions, target: &Target) -> bool {
    let is = |kind: TargetKind| target.kind.contains(&kind);
    target.test
        && (!flags.names_targets()
            || flags.all_targets
            || flags.tests
            || (flags.bins && is(TargetKind::Bin))
            || (flags.examples && is(TargetKind::Example)))
}

/// The id that nextest gives to an executable.
fn binary_id(package: &str, target: &Target) -> String {
    match target.kind.first() {
        Some(TargetKind::Test) => format!("{package}::{}", target.name),
        Some(TargetKind::Bin) => format!("{package}::bin/{}", target.name),
        Some(TargetKind::Example) => format!("{package}::example/{}", target.name),
        Some(TargetKind::Bench) => format!("{package}::bench/{}", target.name),
        _ => package.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, name: &str) -> Target {
        serde_json::from_value(serde_json::json!({
            "name": name, "kind": [kind], "crate_types": [kind], "src_path": "/x.rs", "test": true,
        }))
        .unwrap()
    }

    #[test]
    fn executables_are_named_as_nextest_names_them() {
        assert_eq!(binary_id("app", &target("lib", "app")), "app");
        assert_eq!(binary_id("app", &target("test", "mem")), "app::mem");
        assert_eq!(binary_id("app", &target("bin", "tool")), "app::bin/tool");
    }

    #[test]
    fn only_targets_that_would_be_tested_can_be_missing() {
        let flags = CargoOptions::default();
        assert!(wanted(&flags, &target("test", "mem")));
        let lib_only = CargoOptions { lib: true, ..CargoOptions::default() };
        assert!(!wanted(&lib_only, &target("test", "mem")));
        let bins = CargoOptions { bins: true, ..CargoOptions::default() };
        assert!(wanted(&bins, &target("bin", "tool")) && !wanted(&bins, &target("test", "mem")));
    }
}
