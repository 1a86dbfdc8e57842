//! `cargo memcheck run`: build, list, run, tell.

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use memcheck_core::exit;

use crate::across::{self, Judge, Seen};
use crate::bookkeeping;
use crate::cli::{FormatFlag, NoTestsFlag, RunArgs};
use crate::error::Failure;
use crate::options::Aim;
use crate::present::{JsonLines, Told, stopped, style};
use crate::presenter::Presenter;
use crate::process::Interrupt;
use crate::results::{self, Keeper, Run};
use crate::run::Runner;
use crate::schedule::{self, Event};
use crate::session::{Chosen, LegTests, Session};
use crate::talk::say;
use crate::tally::Tally;
use crate::task::{Needs, Outcome, Task};

/// Runs the selected tests.
pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let interrupt = Interrupt::listen().context("listening for signals")?;
    // From here on nothing of an earlier run can be taken for this one's.
    if let Some(folder) = &args.results {
        results::discard(folder)?;
    }
    let session = match Session::open(args, Aim::Run) {
        // No package with memory tests is no test: `--no-tests` has the say.
        Err(failure) if failure.exit_code() == exit::NO_TESTS => return nothing(args, failure),
        other => other?,
    };
    session.announce();
    results::discard(&session.results_directory())?;
    let Some((nvml, legs)) = interrupt.outlived(session.discover())? else {
        return Ok(stopped(&session.options));
    };
    run_legs(&session, nvml, &legs, &interrupt)
}

fn nothing(args: &RunArgs, failure: Failure) -> Result<u8, Failure> {
    if args.schedule.no_tests == NoTestsFlag::Fail {
        return Err(failure);
    }
    if args.schedule.no_tests == NoTestsFlag::Warn {
        say!("{} {}", style::warning("warning:"), failure.message());
    }
    if args.output.form.message_format == FormatFlag::Json {
        JsonLines::new(io::stdout()).finished(&Tally::default(), exit::OK);
    }
    Ok(exit::OK)
}

fn run_legs(
    session: &Session,
    nvml: Option<PathBuf>,
    legs: &[LegTests],
    interrupt: &Interrupt,
) -> Result<u8, Failure> {
    let options = &session.options;
    let root = session.workspace.root();
    // Before anything runs: a limit that means no test is a mistake.
    let chosen: Vec<(Chosen, Vec<Option<Needs>>)> = legs
        .iter()
        .map(|tests| {
            let chosen = session.choose(tests);
            across::needs(tests, &chosen.run, root).map(|needs| (chosen, needs))
        })
        .collect::<Result<_, _>>()?;
    let runner = Runner::prepare(session, nvml, interrupt.clone())?;
    let json = options.telling.format == FormatFlag::Json;
    let on_stdout = json.then(|| Box::new(JsonLines::new(io::stdout())) as Box<dyn Presenter>);
    let mut told = Told::new(&session.audience(), root, legs.len(), on_stdout);
    told.also(results::file(&session.results_directory()), Keeper::new(&Run::of(session, legs)));
    let mut tally = Tally::default();
    let mut failed = None;
    for (tests, (chosen, needs)) in legs.iter().zip(chosen) {
        tally.elsewhere += chosen.elsewhere.len();
        told.tell(|to| to.leg_started(&tests.leg, chosen.run.len()));
        for task in &chosen.ignored {
            let outcome = Outcome::ignored();
            tally.add(&outcome);
            told.tell(|to| to.test_finished(task, &outcome));
        }
        let before = tally.ran();
        if failed.is_none()
            && !interrupt.is_set()
            && !(options.scheduling.fail_fast && stops(&tally))
        {
            let mut leg =
                RunningLeg { session, runner: &runner, tests, chosen: &chosen, needs: &needs };
            failed = leg.run(&mut told, &mut tally).err();
        }
        tally.not_run += chosen.run.len() - (tally.ran() - before);
    }
    tally.interrupted = interrupt.is_set();
    tally.sort();
    // Written after the run: what the tests left is compared with what there is.
    match bookkeeping::notes(session, legs).context("looking for baselines") {
        Ok(notes) => {
            for note in &notes {
                tally.note(note);
                told.tell(|to| to.note(note));
            }
        }
        // What was measured is told all the same.
        Err(error) => drop(failed.get_or_insert(error)),
    }
    let mut exit_code = tally.exit_code(options.scheduling.no_tests);
    if let Some(error) = failed {
        // The summary so far, and then the reason on stderr.
        exit_code = exit::INTERNAL;
        crate::present::failure(&Failure::Internal(error));
    }
    Ok(told.finish(&tally, exit_code))
}

fn stops(tally: &Tally) -> bool {
    tally.failed + tally.not_measured > 0
}

/// The tests of a leg, and what they want of each other.
struct RunningLeg<'a> {
    session: &'a Session,
    runner: &'a Runner<'a>,
    tests: &'a LegTests,
    chosen: &'a Chosen,
    needs: &'a [Option<Needs>],
}

impl RunningLeg<'_> {
    /// Runs them. Who wants figures of others is told when all have ended.
    fn run(&mut self, told: &mut Told, tally: &mut Tally) -> anyhow::Result<()> {
        let options = &self.session.options;
        let tasks = &self.chosen.run;
        let workers = schedule::workers(
            &options.scheduling,
            &self.tests.leg,
            schedule::cores(),
            &options.rayon_threads,
        );
        let mut seen = Seen::default();
        let mut held: Vec<(usize, Outcome)> = Vec::new();
        let ran = schedule::run_all(
            tasks.len(),
            workers,
            options.scheduling.fail_fast,
            |number, teller| {
                self.runner.run(&tasks[number], move |progress| teller.progress(progress))
            },
            |event| match event {
                Event::Started(number) => told.tell(|to| to.test_started(&tasks[number])),
                Event::Progress(number, progress) => {
                    told.tell(|to| to.progress(&tasks[number], &progress));
                }
                Event::Finished(number, outcome) => {
                    seen.add(&tasks[number], &outcome);
                    if self.needs[number].is_some() {
                        held.push((number, *outcome));
                    } else {
                        tally.add(&outcome);
                        told.tell(|to| to.test_finished(&tasks[number], &outcome));
                    }
                }
            },
        );
        held.sort_by_key(|(number, _)| *number);
        let mut left = 0;
        for (number, outcome) in held {
            let (task, needs) = (&tasks[number], self.needs[number].as_ref());
            let outcome = self.across(task, outcome, needs, &seen);
            left += usize::from(outcome.across.left.is_some());
            tally.add(&outcome);
            told.tell(|to| to.test_finished(task, &outcome));
        }
        if left > 0 {
            say!(
                "note: limits across tests of {left} are judged by `cargo memcheck report --merge`"
            );
        }
        ran
    }

    /// Adds what is found across tests, or what is needed to find it later.
    fn across(&self, task: &Task, outcome: Outcome, needs: Option<&Needs>, seen: &Seen) -> Outcome {
        let Some(needs) = needs else { return outcome };
        let mut judged = outcome.clone();
        if self.session.options.selection.partition.is_some() {
            judged.across.left = Some(needs.clone());
            return judged;
        }
        let pending = self.session.pending_directory();
        let judge = Judge {
            root: self.session.workspace.root(),
            pending: pending.as_deref(),
            levels: &self.session.options.levels,
        };
        judge.judge(task, &mut judged, needs, seen);
        // A test that found something itself was explained already.
        if let Some(mut explained) = self.runner.explain(task, &outcome, &judged) {
            judge.judge(task, &mut explained, needs, seen);
            judged = explained;
        }
        judged
    }
}
