//! `cargo memcheck profile`: one test with attribution, and what it says.

use anyhow::Context;
use memcheck_core::exit;

use super::run::Told;
use crate::cli::{NoTestsFlag, ProfileArgs};
use crate::error::{Expected, Failure};
use crate::present::profile::{Layout, Profiler, Subject};
use crate::run::signals::INTERRUPTED;
use crate::run::{Interrupt, Outcome, Runner, Task};
use crate::schedule::{self, Event};
use crate::session::{Chosen, Session};
use crate::tally::Tally;

/// Why there is nothing to profile.
#[derive(Debug, thiserror::Error)]
enum ProfileError {
    /// No test is named.
    #[error("profile wants one test: write its path, or a part of it")]
    NoName,
    /// Several tests match.
    #[error("`{0}` matches {count} tests, profile wants one:\n{list}", count = .1.len(), list = .1.join("\n"))]
    Several(String, Vec<String>),
    /// No test matches.
    #[error("no memory test matches `{0}`{1}")]
    None(String, &'static str),
}

impl Expected for ProfileError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NoName | Self::Several(..) => exit::USAGE,
            Self::None(..) => exit::NO_TESTS,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoName | Self::None(..) => "`cargo memcheck list` shows the tests".to_owned(),
            Self::Several(..) => {
                "write the whole path; -p and --test tell tests of one name apart".to_owned()
            }
        })
    }
}

/// Profiles the test that is named.
pub(super) fn profile(args: &ProfileArgs) -> Result<u8, Failure> {
    let Some(name) = args.select.filters.first() else { return Err(ProfileError::NoName.into()) };
    let interrupt = Interrupt::listen().context("listening for signals")?;
    let mut session = Session::open(&args.as_run())?;
    session.options.for_profile();
    session.announce();
    let (toolkit, legs) = session.discover()?;
    let chosen: Vec<Chosen> = legs.iter().map(|tests| session.choose(tests)).collect();
    let tasks = only(name, chosen)?;
    let options = &session.options;
    let runner = Runner::prepare(options, &session.workspace, toolkit.as_ref(), interrupt.clone())?;
    let on_stdout = Profiler::new(&options.telling, layout(args), Subject::Test);
    let mut told =
        Told::new(options, session.workspace.root(), legs.len(), Some(Box::new(on_stdout)));
    let mut tally = Tally::default();
    for (number, task) in tasks.iter().enumerate() {
        if interrupt.is_set() {
            break;
        }
        told.tell(|to| to.leg_started(&task.leg, 1));
        schedule::run_all(
            1,
            1,
            false,
            |_, teller| runner.run(number, task, move |progress| teller.progress(progress)),
            |event| tell(&mut told, &mut tally, task, event),
        )?;
    }
    tally.interrupted = interrupt.is_set();
    let exit_code =
        if tally.interrupted { INTERRUPTED } else { tally.exit_code(NoTestsFlag::Fail) };
    Ok(told.finish(&tally, exit_code))
}

fn layout(args: &ProfileArgs) -> Layout {
    let table = &args.table;
    Layout { by: table.by, sort: table.sort, top: table.top }
}

fn tell(told: &mut Told, tally: &mut Tally, task: &Task, event: Event) {
    match event {
        Event::Started(_) => told.tell(|to| to.test_started(task)),
        Event::Progress(_, progress) => told.tell(|to| to.progress(task, &progress)),
        Event::Finished(_, outcome) => finished(told, tally, task, &outcome),
    }
}

fn finished(told: &mut Told, tally: &mut Tally, task: &Task, outcome: &Outcome) {
    tally.add(outcome);
    told.tell(|to| to.test_finished(task, outcome));
}

/// The one test that is meant, on each device that it makes sense on. Among
/// several that match, one whose whole path was written is meant.
fn only(name: &str, chosen: Vec<Chosen>) -> Result<Vec<Task>, ProfileError> {
    let (mut run, mut ignored, mut elsewhere) = (Vec::new(), 0, 0);
    for of_leg in chosen {
        run.extend(of_leg.run);
        ignored += of_leg.ignored.len();
        elsewhere += of_leg.elsewhere.len();
    }
    let id = |task: &Task| (task.binary.id.clone(), task.entry.name.clone());
    let ids = |tasks: &[&Task]| {
        let mut ids: Vec<_> = tasks.iter().map(|task| id(task)).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    let all: Vec<&Task> = run.iter().collect();
    let exact: Vec<&Task> = run.iter().filter(|task| task.entry.name == name).collect();
    let meant = match (ids(&exact).as_slice(), ids(&all).as_slice()) {
        ([only], _) | ([], [only]) => only.clone(),
        ([], []) if ignored > 0 => {
            let why = ": those that match are ignored (--run-ignored all)";
            return Err(ProfileError::None(name.to_owned(), why));
        }
        ([], []) if elsewhere > 0 => {
            let why = ": those that match make sense on another device only (--device)";
            return Err(ProfileError::None(name.to_owned(), why));
        }
        ([], []) => return Err(ProfileError::None(name.to_owned(), "")),
        (_, several) => {
            let lines = several.iter().map(|(binary, test)| format!("  {binary} {test}"));
            return Err(ProfileError::Several(name.to_owned(), lines.collect()));
        }
    };
    Ok(run.into_iter().filter(|task| id(task) == meant).collect())
}
