//! Building the test executables of one leg, with cargo.
//!
//! A leg whose features differ from those of a build by hand has a target
//! directory of its own, so that `target/debug/app` stays the user's. Cargo's
//! intermediate files are shared where that is safe (`directories`).

mod directories;
mod environment;
mod program;
mod resolved;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use cargo_metadata::{Artifact, BuildScript, Message, Target, TargetKind};
use memcheck_core::exit;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use resolved::Stamp;

pub(crate) use directories::target_directory;
pub(crate) use program::{Program, ProgramError, ProgramKind};

use crate::binary::Binary;
use crate::cli::CargoFlags;
use crate::devices::Kind;
use crate::error::{Expected, Failure};
use crate::options::{Options, Verbosity};
use crate::process::Interrupt;
use crate::toolchain::Toolkit;
use crate::workspace::{TestPackage, Workspace, cargo};

/// Why there are no executables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// Cargo said why, on stderr.
    #[error("the build for {0} failed")]
    Failed(&'static str),
    /// Cargo could not be started, or what it said not be read.
    #[error("cargo: {0}")]
    Cargo(std::io::Error),
}

impl Expected for BuildError {
    fn exit_code(&self) -> u8 {
        exit::BUILD
    }
}

/// What is built.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal<'a> {
    /// The test executables.
    Tests,
    /// One program.
    Program(&'a Program),
    /// These benches.
    Benches(&'a [Program]),
}

impl<'a> Goal<'a> {
    /// The arguments of cargo, apart from those that are typed.
    fn arguments(self) -> Vec<&'static str> {
        match self {
            Self::Tests => vec!["test", "--no-run"],
            Self::Program(_) | Self::Benches(_) => vec!["build"],
        }
    }

    /// The targets that no flag of ours has typed already.
    fn targets(self) -> Vec<&'a str> {
        match self {
            Self::Tests => Vec::new(),
            Self::Program(program) => program.arguments(),
            Self::Benches(benches) => benches.iter().flat_map(Program::arguments).collect(),
        }
    }

    /// Whether an executable is among what is wanted.
    fn wants(self, artifact: &Artifact) -> bool {
        match self {
            Self::Tests => artifact.profile.test,
            Self::Program(program) => program.is(&artifact.target),
            Self::Benches(benches) => benches.iter().any(|bench| bench.is(&artifact.target)),
        }
    }
}

/// A test target that cargo left out because its features are off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotBuilt {
    /// The package.
    pub(crate) package: String,
    /// The target.
    pub(crate) target: String,
    /// The features that it wants.
    pub(crate) required: Vec<String>,
}

/// What a build made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Built {
    /// The executables, sorted by id.
    pub(crate) binaries: Vec<Binary>,
    /// Targets that were left out.
    pub(crate) not_built: Vec<NotBuilt>,
}

/// The features that a leg of this kind adds to those of the command line.
fn features(packages: &[TestPackage], kind: Kind) -> Vec<String> {
    let first = match kind {
        Kind::Cpu => return Vec::new(),
        Kind::Sim => "sim",
        Kind::Cuda => "cuda",
    };
    let mut features: Vec<String> =
        packages.iter().flat_map(|package| package.cuda_features(first)).collect();
    features.sort();
    features.dedup();
    features
}

/// The cargo command that builds for a leg of this kind.
fn command(
    workspace: &Workspace,
    packages: &[TestPackage],
    options: &Options,
    goal: Goal<'_>,
    kind: Kind,
    toolkit: Option<&Toolkit>,
) -> Command {
    let mut command = Command::new(cargo());
    command.args(goal.arguments()).args(["--message-format", "json-render-diagnostics"]);
    command.args(["--color", options.telling.color.name()]);
    if options.telling.verbosity == Verbosity::Quiet {
        command.arg("--quiet");
    }
    for package in packages {
        command.arg("--package").arg(workspace.spec(&package.package));
    }
    command.args(options.cargo.for_test());
    command.args(goal.targets());
    let features = features(packages, kind);
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    command.arg("--target-dir").arg(target_directory(workspace, kind));
    if let Some(directory) = directories::build_directory(workspace, kind) {
        command.env(directories::BUILD_DIRECTORY, directory);
    }
    if let Some(toolkit) = toolkit {
        toolkit.apply(&mut command);
    }
    command
}

/// What cargo said while it built.
#[derive(Default)]
struct Said {
    ok: bool,
    /// Whether it came as far as building: everything was resolved.
    began: bool,
    artifacts: Vec<Artifact>,
    scripts: HashMap<String, BuildScript>,
}

fn run(mut command: Command, goal: Goal<'_>) -> Result<Said, BuildError> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(BuildError::Cargo)?;
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let cargo = i32::try_from(child.id()).map(Pid::from_raw);
    let heard = thread::scope(|scope| {
        let (done, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            // Ctrl-C reaches all of a terminal; another signal, or another sender, us alone.
            if let (true, Ok(cargo)) = (Interrupt::comes_before(&ended), cargo) {
                let _ = kill(cargo, Signal::SIGTERM);
            }
        });
        let heard = hear(stdout, goal);
        drop(done);
        heard
    });
    if heard.is_err() {
        let _ = child.kill();
    }
    let ended = child.wait();
    let said = heard.map_err(BuildError::Cargo)?;
    Ok(Said { ok: ended.map_err(BuildError::Cargo)?.success(), ..said })
}

/// Reads what cargo says, to its end.
fn hear(stdout: impl BufRead, goal: Goal<'_>) -> std::io::Result<Said> {
    let mut said = Said::default();
    for message in Message::parse_stream(stdout) {
        said.began = true;
        match message? {
            Message::CompilerArtifact(artifact)
                if artifact.executable.is_some() && goal.wants(&artifact) =>
            {
                said.artifacts.push(artifact);
            }
            Message::BuildScriptExecuted(script) => {
                said.scripts.insert(script.package_id.repr.clone(), script);
            }
            _ => {}
        }
    }
    Ok(said)
}

/// Builds the executables of `packages` that are wanted for a leg of this kind.
pub(crate) fn build(
    workspace: &Workspace,
    packages: &[TestPackage],
    options: &Options,
    goal: Goal<'_>,
    kind: Kind,
    toolkit: Option<&Toolkit>,
) -> Result<Built, Failure> {
    let what = match kind {
        Kind::Cpu => "the CPU",
        Kind::Sim => "the simulated CUDA device",
        Kind::Cuda => "the CUDA device",
    };
    let command = || command(workspace, packages, options, goal, kind, toolkit);
    let directory = target_directory(workspace, kind);
    let stamp = Stamp::of(workspace, &options.cargo, &command(), (kind, &directory));
    let mut said = if stamp.as_ref().is_some_and(Stamp::holds) {
        let mut offline = command();
        offline.arg("--offline");
        run(offline, goal)?
    } else {
        run(command(), goal)?
    };
    if !said.ok && !said.began && stamp.as_ref().is_some_and(Stamp::holds) {
        // What was resolved last time is not on this machine any more.
        said = run(command(), goal)?;
    }
    if let Some(stamp) = stamp {
        stamp.set(said.began);
    }
    if !said.ok {
        return Err(BuildError::Failed(what).into());
    }
    let Said { artifacts, scripts, .. } = said;
    let mut built = Built::default();
    let linked: Vec<PathBuf> = scripts
        .values()
        .flat_map(|script| &script.linked_paths)
        .filter_map(|path| environment::library_path(path.as_str(), workspace))
        .collect();
    for (index, package) in packages.iter().enumerate() {
        let of_package = || artifacts.iter().filter(|a| a.package_id == package.package.id);
        let script = scripts.get(&package.package.id.repr);
        built.binaries.extend(of_package().map(|artifact| Binary {
            id: binary_id(package.name(), &artifact.target),
            package: index,
            path: artifact.executable.clone().expect("filtered above").into_std_path_buf(),
            environment: environment::for_test(package, script, artifact, &linked),
        }));
        let left_out = package.package.targets.iter().filter(|target| {
            matches!(goal, Goal::Tests)
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

/// Whether a plain `cargo test` with these flags would build `target`, were
/// its features on. A target that is named is cargo's to complain about.
fn wanted(flags: &CargoFlags, target: &Target) -> bool {
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
        let flags = CargoFlags::default();
        assert!(wanted(&flags, &target("test", "mem")));
        let lib_only = CargoFlags { lib: true, ..CargoFlags::default() };
        assert!(!wanted(&lib_only, &target("test", "mem")));
        let bins = CargoFlags { bins: true, ..CargoFlags::default() };
        assert!(wanted(&bins, &target("bin", "tool")) && !wanted(&bins, &target("test", "mem")));
    }
}
