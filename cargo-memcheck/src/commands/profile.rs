//! `cargo memcheck profile`: runs one test or one program with attribution.

use std::time::Instant;

use anyhow::Context;
use memcheck_core::limits::Layer;
use memcheck_core::runs::plan::{Explain, Stage};
use memcheck_core::wire::exit;

use super::one::only;
use super::prologue::Prologue;
use crate::build::compile::{BuildGoal, Program, ProgramKind};
use crate::build::leg::Leg;
use crate::discovery::session::Session;
use crate::discovery::task::{Task, TestOutcome, TestSubject};
use crate::execution::proof;
use crate::execution::schedule::{self, ProgressSender, RunEvent};
use crate::invocation::cli::ProfileArgs;
use crate::invocation::options::Flags;
use crate::invocation::values::{NoTests, Verbosity};
use crate::presentation::presenters::profile::Profiler;
use crate::presentation::presenters::{self, Broadcast, stopped};
use crate::presentation::tally::Tally;
use crate::system::binary::Binary;
use crate::system::error::{CommandError, Failure};
use crate::system::printing::eprint_line;
use crate::system::process::Interrupt;

#[derive(Debug, thiserror::Error)]
enum ProfileError {
    #[error("profile needs one test: write its path, or a part of it")]
    NoName,
    #[error("profile needs one test or one program, not several")]
    Both,
    #[error("--archive-file: an archive has tests, but no programs")]
    Archived,
    #[error("`{0}` is for tests: a program has no iterations, no baseline and no `#[ignore]`")]
    ForTests(String),
}

impl CommandError for ProfileError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoName => "`cargo memcheck list` shows the tests".to_owned(),
            Self::Archived => "profile the program on a machine with its sources".to_owned(),
            Self::Both => "the arguments of a program come after `--`".to_owned(),
            Self::ForTests(_) => {
                "limits of a program: --max-peak, --max-retained, --fits and --timeout".to_owned()
            }
        })
    }
}

pub(super) fn profile(args: &ProfileArgs) -> Result<u8, Failure> {
    match named(args)? {
        Some(program) => profile_program(args, &program),
        None => profile_test(args),
    }
}

fn named(args: &ProfileArgs) -> Result<Option<Program>, ProfileError> {
    let kinds = [
        (ProgramKind::Bin, &args.cargo.bin),
        (ProgramKind::Example, &args.cargo.example),
        (ProgramKind::Bench, &args.bench),
    ];
    let mut programs = kinds.into_iter().flat_map(|(kind, names)| {
        names.iter().map(move |name| Program { kind, name: name.clone() })
    });
    match (programs.next(), programs.next(), args.select.filters.first()) {
        (None, ..) => Ok(None),
        (Some(program), None, None) => Ok(Some(program)),
        _ => Err(ProfileError::Both),
    }
}

/// The first run already records call stacks, and baselines are neither compared nor written.
fn flags(args: &ProfileArgs, libtest: &[String]) -> Result<Flags, Failure> {
    let ProfileArgs {
        select,
        launch,
        archive,
        limits,
        report,
        output,
        cargo,
        table: _,
        live,
        bench: _,
        arguments: _,
    } = args;
    let mut flags = Flags {
        archive: archive.clone(),
        limits: Layer { baseline: Some(false), ..limits.layer() },
        reports: report.clone(),
        required_explain: Some(Explain::Always),
        ..Flags::new(output, cargo).select(select)?.launch(launch)?.libtest(libtest)?
    };
    flags.scheduling.live = *live;
    Ok(flags)
}

fn profile_test(args: &ProfileArgs) -> Result<u8, Failure> {
    let name = match args.select.filters.as_slice() {
        [] => return Err(ProfileError::NoName.into()),
        [name] => name,
        _ => return Err(ProfileError::Both.into()),
    };
    let prologue = Prologue::open(flags(args, &args.arguments)?)?;
    let Prologue { session, interrupt } = &prologue;
    let Some((runner, chosen)) = prologue.tests()? else { return Ok(stopped(&session.options)) };
    let tasks = only("profile", name, chosen)?;
    let proofs = proof::of(session);
    let mut broadcast = open_broadcast(session, args);
    let mut tally = Tally::default();
    let started = Instant::now();
    for task in &tasks {
        if interrupt.is_set() {
            break;
        }
        broadcast.notify(|to| to.leg_started(&task.leg, 1));
        if let Some(proof) = proofs.get(&task.leg.name()) {
            broadcast.notify(|to| to.proof(&task.leg, proof));
        }
        let ran = schedule::run_all(
            1,
            1,
            false,
            |_, teller| {
                let on_progress = move |stage, progress| teller.progress(stage, progress);
                Ok(runner.run(task, on_progress)?)
            },
            |event| forward_event(&mut broadcast, &mut tally, task, event),
        );
        if let Err(failure) = ran {
            presenters::failure(&failure);
            tally.failure = Some((&failure).into());
            break;
        }
    }
    Ok(end(broadcast, tally, started, interrupt))
}

fn end(broadcast: Broadcast, mut tally: Tally, started: Instant, interrupt: &Interrupt) -> u8 {
    (tally.interrupted, tally.took) = (interrupt.is_set(), started.elapsed());
    let exit_code = tally.exit_code(NoTests::Fail);
    broadcast.finish(&tally, exit_code, None)
}

fn profile_program(args: &ProfileArgs, program: &Program) -> Result<u8, Failure> {
    if args.archive.archive_file.is_some() {
        return Err(ProfileError::Archived.into());
    }
    if let Some(flag) = args.for_tests_only() {
        return Err(ProfileError::ForTests(flag).into());
    }
    let prologue = Prologue::open(flags(args, &[])?)?;
    let Prologue { session, interrupt } = &prologue;
    let (package, file) = program.find(&session.packages, session.workspace.root())?;
    let package = &session.packages[package];
    let of = |leg: &Leg, binary: &Binary| {
        let subject = TestSubject::Program { name: program.name.clone(), file: file.clone() };
        Ok(session.task(package, binary, subject, leg))
    };
    let (packages, goal) = (std::slice::from_ref(package), BuildGoal::Program(program));
    let Some((runner, tasks)) = prologue.programs(packages, goal, of)? else {
        return Ok(stopped(&session.options));
    };
    tasks.first().context("cargo did not build the program")?;
    let mut broadcast = open_broadcast(session, args);
    let mut tally = Tally::default();
    let started = Instant::now();
    // As with cargo, a bench runs in the folder of its package, and any other program in the
    // current folder.
    let folder = package.folder().to_owned();
    let folder = (program.kind == ProgramKind::Bench).then_some(&folder);
    for task in &tasks {
        if interrupt.is_set() {
            break;
        }
        if session.options.reporting.verbosity > Verbosity::Quiet {
            eprint_line!("running {} on {}", task.binary.id, task.leg.name());
        }
        let run = |_, teller: ProgressSender| {
            let on_progress = move |progress| teller.progress(Stage::First, progress);
            Ok(runner.program(task, &args.arguments, folder, on_progress)?)
        };
        let on_event = |event| forward_event(&mut broadcast, &mut tally, task, event);
        if let Err(failure) = schedule::run_all(1, 1, false, run, on_event) {
            presenters::failure(&failure);
            tally.failure = Some((&failure).into());
            break;
        }
    }
    Ok(end(broadcast, tally, started, interrupt))
}

fn open_broadcast(session: &Session, args: &ProfileArgs) -> Broadcast {
    let on_stdout = Profiler::new(&session.options.reporting, args.table);
    Broadcast::new(&session.report_context(), session.legs.len(), Some(Box::new(on_stdout)))
}

fn forward_event(broadcast: &mut Broadcast, tally: &mut Tally, task: &Task, event: RunEvent) {
    match event {
        RunEvent::Started(_) => broadcast.notify(|to| to.test_started(task)),
        RunEvent::Progress(_, stage, progress) => {
            broadcast.notify(|to| to.progress(task, stage, &progress));
        }
        RunEvent::Finished(_, outcome) => {
            let outcome = TestOutcome { is_profiled: true, ..*outcome };
            tally.add(&outcome);
            broadcast.notify(|to| to.test_finished(task, &outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::invocation::cli::{Cli, Command};

    /// The arguments are refused before anything is built.
    #[test]
    fn a_profile_is_about_one_test_or_one_program() {
        for (arguments, message, hint) in [
            ("", "profile needs one test", "`cargo memcheck list` shows the tests"),
            ("a b", "not several", "come after `--`"),
            ("--example a --bench b", "not several", "come after `--`"),
            ("--example a layers", "not several", "come after `--`"),
            ("--bin a --iterations 3", "`--iterations` is for tests", "--max-peak"),
        ] {
            let words = ["x", "profile"].into_iter().chain(arguments.split_whitespace());
            let Command::Profile(args) = Cli::try_parse_from(words).unwrap().command else {
                panic!()
            };
            let failure = profile(&args).unwrap_err();
            assert_eq!(failure.exit_code(), exit::USAGE, "{arguments}");
            assert!(failure.message().contains(message), "{arguments}: {}", failure.message());
            assert!(failure.hint().unwrap().contains(hint), "{arguments}: {:?}", failure.hint());
        }
    }
}
