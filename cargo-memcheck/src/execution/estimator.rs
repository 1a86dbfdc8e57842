//! The estimator is a separate program, because the command itself is built without candle. Its
//! package is in the folder of memcheck-runtime. It runs on the simulated device, a process for
//! each machine, and exchanges JSON.

use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use cargo_metadata::semver::Version;
use memcheck_core::request::variables;
use memcheck_core::wire::estimate::{Answer, Question};
use memcheck_core::wire::exit;

use crate::build::compile::{BuildGoal, Program, ProgramKind};
use crate::build::generated::Generated;
use crate::build::workspace::{RUNTIME, Workspace};
use crate::discovery::legs::Legs;
use crate::discovery::session::Session;
use crate::invocation::values::CargoOptions;
use crate::system::binary::Binary;
use crate::system::error::{CommandError, Failure};
use crate::system::process::{self, ShortRun};

const ESTIMATOR: &str = "memcheck-estimate";
/// That of the requirement of memcheck-estimate.
const LEAST_CANDLE: Version = Version::new(0, 11, 0);

/// The feature of the estimator that compiles candle-transformers with flash-attention.
const FLASH_ATTENTION: &str = "memcheck-estimate/flash-attn";

const SOURCE: &str = "\
//! Written by `cargo memcheck estimate`.

use memcheck_runtime as _;

fn main() {
    memcheck_estimate::main();
}
";

#[derive(Debug, thiserror::Error)]
enum EstimatorError {
    /// The estimator comes with memcheck-runtime.
    #[error("the estimator comes with {RUNTIME}, which this workspace does not depend on")]
    NoRuntime,
    #[error("the estimator ended without an answer: {0}")]
    NoAnswer(String),
}

impl CommandError for EstimatorError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoRuntime => exit::USAGE,
            Self::NoAnswer(_) => exit::NOT_MEASURED,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoRuntime => format!(
                "`cargo add --dev {RUNTIME} --git URL` with the URL of memcheck's repository, or \
                 run the command in a clone of it"
            ),
            Self::NoAnswer(_) => {
                "if it was killed, this machine has too little memory for the model's masks: use \
                 a smaller --seq"
                    .to_owned()
            }
        })
    }
}

#[derive(Debug)]
pub(crate) struct Estimator {
    binary: Binary,
}

impl Estimator {
    /// In the workspace if it is a member, else in a package that this function writes.
    pub(crate) fn target(
        mut cargo: CargoOptions,
        flash_attn: bool,
    ) -> Result<(ProgramKind, CargoOptions), Failure> {
        let workspace = Workspace::load(&cargo)?;
        let member = workspace.members().iter().any(|package| package.name.as_str() == ESTIMATOR);
        let name = vec![ESTIMATOR.to_owned()];
        // Only now, because the user's workspace does not have this feature.
        cargo.features.extend(flash_attn.then(|| FLASH_ATTENTION.to_owned()));
        Ok(if member {
            // It is built as an example, because an example has the features that the tests of the
            // workspace have. So both use the same build of candle.
            let packages = name.clone();
            (ProgramKind::Example, CargoOptions { packages, example: name, ..cargo })
        } else {
            if workspace.resolved(RUNTIME).is_none() {
                return Err(EstimatorError::NoRuntime.into());
            }
            let folder = workspace.own_directory().join("estimate");
            Generated {
                name: "memcheck-estimate-program",
                dependencies: &[(RUNTIME, RUNTIME), (ESTIMATOR, RUNTIME)],
                source: ("src/bin/memcheck-estimate.rs", SOURCE),
                least_candle: LEAST_CANDLE,
            }
            .write(&folder, &workspace)
            .context("writing the package of the estimator")?;
            let cargo = CargoOptions {
                manifest_path: Some(folder.join("Cargo.toml")),
                target_dir: Some(workspace.target_directory().to_owned()),
                bin: name,
                ..cargo
            };
            (ProgramKind::Bin, cargo)
        })
    }

    pub(crate) fn build(session: &Session, kind: ProgramKind) -> Result<Self, Failure> {
        let program = Program { kind, name: ESTIMATOR.to_owned() };
        let leg = session.legs.first().context("no leg of the run is `sim`")?;
        let built =
            Legs::open(session)?.build(leg, &session.packages, BuildGoal::Program(&program))?;
        let binary = built.binaries.into_iter().next();
        Ok(Self { binary: binary.context("cargo did not build the estimator")? })
    }

    pub(crate) fn estimate(&self, question: &Question, machine: &str) -> Result<Answer, Failure> {
        let question =
            serde_json::to_string(question).context("writing the question to the estimator")?;
        let mut command = Command::new(self.binary.pinned_path());
        command
            .envs(self.binary.environment.iter().map(|(name, value)| (name, value)))
            .env(variables::SIM.name, machine)
            .env(variables::RAYON_NUM_THREADS.name, "1")
            .env_remove(variables::LIST)
            .env_remove(variables::JOB)
            .env_remove(variables::PROGRAM);
        let terms = ShortRun {
            input: Some(question.as_bytes()),
            most: usize::MAX,
            ..ShortRun::within(Duration::MAX)
        };
        let output = process::short(&command, terms)
            .with_context(|| format!("{}", self.binary.path().display()))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let last = stdout.lines().last().unwrap_or_default();
        Ok(serde_json::from_str(last).map_err(|_| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last = stderr.lines().last().map(|line| format!(", {line}"));
            EstimatorError::NoAnswer(format!("{}{}", output.status, last.unwrap_or_default()))
        })?)
    }
}

#[derive(Debug)]
pub(crate) struct DeviceFit {
    pub(crate) device: String,
    /// The peak in bytes, or why the model does not fit.
    pub(crate) result: Result<u64, String>,
}

#[cfg(test)]
mod tests {
    use memcheck_core::wire::estimate::VERSION;

    use super::*;

    #[test]
    fn an_estimator_that_dies_is_an_error() {
        let binary = Binary::new(ESTIMATOR.to_owned(), 0, "false".into(), Vec::new());
        let question = Question {
            version: VERSION,
            config: serde_json::Value::Null,
            gguf: None,
            weights: None,
            batch: 1,
            seq: 1,
            generate: 0,
            train: false,
            flash_attn: false,
            dtype: None,
        };
        let failure = Estimator { binary }.estimate(&question, "h200").unwrap_err();
        assert_eq!(failure.exit_code(), exit::NOT_MEASURED);
        assert!(failure.message().contains("without an answer: exit status: 1"));
        assert!(failure.hint().unwrap().contains("--seq"));
    }
}
