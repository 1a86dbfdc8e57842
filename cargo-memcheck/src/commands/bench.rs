//! `cargo memcheck bench`: runs the benches of the packages on a device.

use std::path::PathBuf;
use std::process::ExitStatus;

use memcheck_core::wire::exit;

use super::prologue::Prologue;
use crate::build::compile::{BuildGoal, Program, ProgramError, ProgramKind};
use crate::build::leg::Leg;
use crate::discovery::session::Session;
use crate::discovery::task::{Task, TestSubject};
use crate::invocation::cli::{BenchArgs, OutputFlags};
use crate::invocation::options::Flags;
use crate::presentation::presenters::stopped;
use crate::system::binary::Binary;
use crate::system::error::{CommandError, Failure};
use crate::system::printing::eprint_line;
use crate::system::process::INTERRUPTED;

#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("no bench: none of the selected packages has a `[[bench]]` that its features allow")]
    None,
}

impl CommandError for BenchError {
    fn exit_code(&self) -> u8 {
        exit::NO_TESTS
    }

    fn hint(&self) -> Option<String> {
        Some("`cargo memcheck run` runs the memory tests".to_owned())
    }
}

struct Bench {
    task: Task,
    /// Each device has its own, because figures of different devices must not be compared.
    measured: PathBuf,
}

pub(super) fn bench(args: &BenchArgs) -> Result<u8, Failure> {
    let BenchArgs { filter, bench, device, config_file, runner, color: _, cargo, arguments } = args;
    let flags = Flags::new(&OutputFlags::default(), cargo).devices(device)?;
    let flags = Flags { config_file: config_file.clone(), ..flags.runner(runner.as_deref())? };
    let prologue = Prologue::open(flags)?;
    let session = &prologue.session;
    let benches = benches(session, bench)?;
    let goal = BuildGoal::Benches(&benches);
    let of = |leg: &Leg, binary: &Binary| built(session, leg, binary);
    let Some((runner, built)) = prologue.programs(&session.packages, goal, of)? else {
        return Ok(stopped(&session.options));
    };
    let mut failed = Vec::new();
    let mut codes = Vec::new();
    let arguments: Vec<String> = filter.iter().chain(arguments).cloned().collect();
    for Bench { task, measured } in &built {
        eprint_line!("running {} on {}", task.binary.id, task.leg.name());
        let Some(status) = runner.bench(task, &arguments, measured)? else {
            eprint_line!("interrupted");
            return Ok(INTERRUPTED);
        };
        if !status.success() {
            failed.push(describe_failure(task, status));
            codes.push(code(status));
        }
    }
    for failure in &failed {
        eprint_line!("{failure}");
    }
    let gravest = [exit::FAILED, exit::NO_DEVICE, exit::NOT_MEASURED];
    Ok(gravest.into_iter().find(|code| codes.contains(code)).unwrap_or(exit::OK))
}

fn built(session: &Session, leg: &Leg, binary: &Binary) -> Result<Bench, Failure> {
    let package = &session.packages[binary.package];
    let name = binary.id.rsplit('/').next().unwrap_or_default().to_owned();
    let named = Program { kind: ProgramKind::Bench, name };
    let (_, file) = named.find(std::slice::from_ref(package), session.workspace.root())?;
    let task = session.task(package, binary, TestSubject::Program { name: named.name, file }, leg);
    let measured = session.workspace.own_directory().join("criterion").join(leg.name());
    Ok(Bench { task, measured })
}

/// The runtime in a bench has exit codes of its own for a missing device and for a wrong version.
fn code(status: ExitStatus) -> u8 {
    let own = [exit::NO_DEVICE, exit::NOT_MEASURED];
    own.into_iter().find(|&own| status.code() == Some(own.into())).unwrap_or(exit::FAILED)
}

fn describe_failure(task: &Task, status: ExitStatus) -> String {
    format!("failed: {} on {} ({status})", task.binary.id, task.leg.name())
}

fn benches(session: &Session, named: &[String]) -> Result<Vec<Program>, Failure> {
    let program = |name: &str| Program { kind: ProgramKind::Bench, name: name.to_owned() };
    if !named.is_empty() {
        return named
            .iter()
            .map(|name| {
                let program = program(name);
                match program.find(&session.packages, session.workspace.root()) {
                    // If several packages have such a bench, all of them are selected.
                    Ok(_) | Err(ProgramError::Several(..)) => Ok(program),
                    Err(error) => Err(error.into()),
                }
            })
            .collect();
    }
    let targets = session.packages.iter().flat_map(|package| &package.package.targets);
    let (wanting, free): (Vec<_>, Vec<_>) = targets
        .filter(|target| target.is_bench())
        .partition(|target| !target.required_features.is_empty());
    for target in wanting {
        let features = target.required_features.join(", ");
        let name = &target.name;
        eprint_line!(
            "note: bench {name} is skipped, because it needs the features {features}; --bench \
            {name} selects it"
        );
    }
    let mut all: Vec<Program> = free.into_iter().map(|target| program(&target.name)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup();
    if all.is_empty() { Err(BenchError::None.into()) } else { Ok(all) }
}
