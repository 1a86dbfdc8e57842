//! `cargo memcheck run`: builds, lists, runs and presents one device after another, so that the
//! first verdict does not wait for the second build.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;
use memcheck_core::runs::relations::Needs;
use memcheck_core::wire::exit;

use crate::discovery::legs::Legs;
use crate::discovery::session::{Chosen, LegTests, Session};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::bookkeeping;
use crate::execution::relations::{self, Judge, MeasuredFigures};
use crate::execution::run::Runner;
use crate::execution::schedule::{self, Event};
use crate::invocation::cli::RunArgs;
use crate::invocation::devices::Leg;
use crate::invocation::options::Flags;
use crate::invocation::values::{Format, NoTests};
use crate::presentation::events::Presenter;
use crate::presentation::presenters::{Broadcast, JsonLines, stopped, style};
use crate::presentation::results::{self, Keeper, RunDescription};
use crate::presentation::tally::Tally;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;
use crate::system::process::{self, Interrupt};

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let interrupt = Interrupt::listen().context("listening for signals")?;
    // Earlier results are removed first, so that they cannot be taken for those of this run.
    if let Some(folder) = &args.results {
        results::discard(folder)?;
    }
    let session = match Session::open(flags(args)?) {
        // A workspace without memory tests is a run without tests, so `--no-tests` decides the exit
        // code.
        Err(failure) if failure.exit_code() == exit::NO_TESTS => {
            return report_no_tests(args, failure);
        }
        other => other?,
    };
    session.announce();
    results::discard(&session.results_directory())?;
    run_legs(&session, &interrupt)
}

fn flags(args: &RunArgs) -> Result<Flags, Failure> {
    let RunArgs {
        select,
        ci,
        part,
        archive,
        schedule,
        limits,
        levels,
        report,
        output,
        cargo,
        results,
        libtest,
    } = args;
    let flags = Flags::new(output, cargo).select(select)?.schedule(schedule)?.partition(part)?;
    Ok(Flags {
        archive: archive.clone(),
        ci: ci.clone(),
        limits: limits.layer(),
        reports: report.clone(),
        results: results.clone(),
        ..flags.levels(levels)?.libtest(libtest)?
    })
}

fn report_no_tests(args: &RunArgs, failure: Failure) -> Result<u8, Failure> {
    if args.schedule.no_tests == NoTests::Fail {
        return Err(failure);
    }
    if args.schedule.no_tests == NoTests::Warn {
        eprint_line!("{} {}", style::warning("warning:"), failure.message());
    }
    if args.output.form.message_format == Format::Json {
        JsonLines::new(io::stdout()).finished(&Tally::default(), exit::OK);
    }
    Ok(exit::OK)
}

struct RunState<'a> {
    session: &'a Session,
    runner: Runner<'a>,
    interrupt: &'a Interrupt,
    broadcast: Broadcast,
    tally: Tally,
    listed: Vec<LegTests>,
    /// Can be written once all legs are known.
    run: Rc<OnceCell<RunDescription>>,
}

fn run_legs(session: &Session, interrupt: &Interrupt) -> Result<u8, Failure> {
    let options = &session.options;
    let (first, others) = session.legs.split_first().context("a run has a device")?;
    let begun = Legs::open(session).and_then(|mut legs| {
        let first = RunningLeg::begin(session, &mut legs, first)?;
        Ok((legs, first))
    });
    // Presenters start with the first leg that is listed. A failure before that is all that can be
    // reported.
    let Some((mut legs, first)) = interrupt.outlived(begun)? else { return Ok(stopped(options)) };
    let json = options.reporting.format == Format::Json;
    let on_stdout = json.then(|| Box::new(JsonLines::new(io::stdout())) as Box<dyn Presenter>);
    let root = session.workspace.root();
    let mut broadcast =
        Broadcast::new(&session.report_context(), root, session.legs.len(), on_stdout);
    let run = Rc::new(OnceCell::new());
    broadcast.add_report(results::file(&session.results_directory()), Keeper::new(run.clone()));
    let mut state = RunState {
        session,
        runner: Runner::prepare(session, legs.nvml(), interrupt.clone())?,
        interrupt,
        broadcast,
        tally: Tally::default(),
        listed: Vec::new(),
        run,
    };
    state.run(first);
    for leg in others {
        if state.is_over() && !legs.is_known(leg) {
            state.tally.unstarted.push(leg.name());
            continue;
        }
        match interrupt.outlived(RunningLeg::begin(session, &mut legs, leg)) {
            Ok(Some(leg)) => state.run(leg),
            Ok(None) => state.tally.unstarted.push(leg.name()),
            Err(failure) => {
                state.tally.unstarted.push(leg.name());
                state.fail(&failure);
            }
        }
    }
    Ok(state.finish())
}

impl RunState<'_> {
    fn is_over(&self) -> bool {
        let Tally { failed, not_measured, failure, .. } = &self.tally;
        let fail_fast = self.session.options.scheduling.fail_fast;
        failure.is_some() || self.interrupt.is_set() || (fail_fast && failed + not_measured > 0)
    }

    /// The first failure decides the exit code, and no further test starts.
    fn fail(&mut self, failure: &Failure) {
        crate::presentation::presenters::failure(failure);
        self.tally.failure.get_or_insert(failure.into());
    }

    fn run(&mut self, leg: RunningLeg<'_>) {
        let RunningLeg { tests, chosen, .. } = &leg;
        let started = Instant::now();
        let mut tally = Tally { elsewhere: chosen.elsewhere.len(), ..Tally::default() };
        self.broadcast.notify(|to| to.leg_started(&tests.leg, chosen.run.len()));
        for task in &chosen.ignored {
            let outcome = TestOutcome::ignored();
            tally.add(&outcome);
            self.broadcast.notify(|to| to.test_finished(task, &outcome));
        }
        if !self.is_over()
            && let Err(error) = leg.run(&self.runner, &mut self.broadcast, &mut tally)
        {
            self.fail(&Failure::Internal(error));
            tally.failure.clone_from(&self.tally.failure);
        }
        tally.not_run = chosen.run.len() - tally.ran();
        tally.interrupted = self.interrupt.is_set();
        tally.took = started.elapsed();
        self.broadcast.notify(|to| to.leg_finished(&tests.leg, &tally));
        self.tally.join(tally);
        self.listed.push(leg.tests);
    }

    fn finish(mut self) -> u8 {
        self.tally.interrupted |= self.interrupt.is_set();
        self.tally.sort();
        self.run.get_or_init(|| RunDescription::of(self.session, &self.listed));
        // A baseline can only be known to belong to no test if the tests of all legs are known. The
        // check comes after the run, because it must include the files that the tests have written.
        if self.tally.unstarted.is_empty() {
            match bookkeeping::notes(self.session, &self.listed).context("looking for baselines") {
                Ok(notes) => {
                    for note in &notes {
                        self.tally.note(note);
                        self.broadcast.notify(|to| to.note(note));
                    }
                }
                Err(error) => self.fail(&Failure::Internal(error)),
            }
        }
        let exit_code = self.tally.exit_code(self.session.options.scheduling.no_tests);
        self.broadcast.finish(&self.tally, exit_code)
    }
}

struct RunningLeg<'a> {
    session: &'a Session,
    tests: LegTests,
    chosen: Chosen,
    needs: Vec<Option<Needs>>,
}

impl<'a> RunningLeg<'a> {
    /// Refuses a limit that names no test before a test of the leg runs.
    fn begin(session: &'a Session, legs: &mut Legs<'_>, leg: &Leg) -> Result<Self, Failure> {
        let tests = legs.tests(leg)?;
        let chosen = session.choose(&tests);
        let needs = relations::needs(&tests, &chosen.run, session.workspace.root())?;
        Ok(Self { session, tests, chosen, needs })
    }

    /// A test that needs the figures of others is presented when all tests have ended.
    fn run(
        &self,
        runner: &Runner<'_>,
        broadcast: &mut Broadcast,
        tally: &mut Tally,
    ) -> anyhow::Result<()> {
        let options = &self.session.options;
        let tasks = &self.chosen.run;
        let workers = schedule::workers(
            &options.scheduling,
            &self.tests.leg,
            process::cores(),
            &options.rayon_threads,
        );
        let mut measured_figures = MeasuredFigures::default();
        let mut held: Vec<(usize, TestOutcome)> = Vec::new();
        let ran = schedule::run_all(
            tasks.len(),
            workers,
            options.scheduling.fail_fast,
            |number, teller| runner.run(&tasks[number], move |progress| teller.progress(progress)),
            |event| match event {
                Event::Started(number) => broadcast.notify(|to| to.test_started(&tasks[number])),
                Event::Progress(number, progress) => {
                    broadcast.notify(|to| to.progress(&tasks[number], &progress));
                }
                Event::Finished(number, outcome) => {
                    measured_figures.add(&tasks[number], &outcome);
                    if self.needs[number].is_some() {
                        held.push((number, *outcome));
                    } else {
                        tally.add(&outcome);
                        broadcast.notify(|to| to.test_finished(&tasks[number], &outcome));
                    }
                }
            },
        );
        held.sort_by_key(|(number, _)| *number);
        let mut left = 0;
        for (number, outcome) in held {
            let (task, needs) = (&tasks[number], self.needs[number].as_ref());
            let outcome = self.across(runner, task, outcome, (needs, &measured_figures));
            left += usize::from(outcome.across.left.is_some());
            tally.add(&outcome);
            broadcast.notify(|to| to.test_finished(task, &outcome));
        }
        if left > 0 {
            eprint_line!(
                "note: limits across tests of {left} are judged by `cargo memcheck report --merge`"
            );
        }
        ran
    }

    /// A shard adds its needs instead, with which a merge can find the findings later.
    fn across(
        &self,
        runner: &Runner<'_>,
        task: &Task,
        outcome: TestOutcome,
        (needs, measured_figures): (Option<&Needs>, &MeasuredFigures),
    ) -> TestOutcome {
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
        judge.judge(task, &mut judged, needs, measured_figures);
        // A test with findings of its own already has their call sites.
        if let Some(mut explained) = runner.explain(task, &outcome, &judged) {
            judge.judge(task, &mut explained, needs, measured_figures);
            judged = explained;
        }
        judged
    }
}
