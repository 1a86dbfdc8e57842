//! `cargo memcheck run`: builds, lists, runs and presents one device after another, so that the
//! first verdict does not wait for the second build.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::runs::relations::Needs;
use memcheck_core::runs::report::Judged;
use memcheck_core::wire::exit;

use super::earlier_output;
use crate::build::leg::Leg;
use crate::discovery::legs::Legs;
use crate::discovery::listing::DiscoverError;
use crate::discovery::session::{Chosen, LegTests, Session};
use crate::discovery::task::TestOutcome;
use crate::execution::bookkeeping;
use crate::execution::proof::{self, CheckedProof};
use crate::execution::relations::{self, MeasuredFigures};
use crate::execution::run::{Runner, TestRuns};
use crate::execution::schedule::{self, RunEvent};
use crate::invocation::cli::RunArgs;
use crate::invocation::options::Flags;
use crate::invocation::values::{Format, NoTests};
use crate::presentation::events::Presenter;
use crate::presentation::presenters::{Broadcast, JsonLines, reports, stopped, style};
use crate::presentation::results::{self, RunDescription, Store};
use crate::presentation::tally::Tally;
use crate::system::error::{CommandError, Failure};
use crate::system::panics::caught;
use crate::system::printing::{Stdout, eprint_line};
use crate::system::process::{self, Interrupt, Output};

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let interrupt = Interrupt::listen().context("listening for signals")?;
    // Earlier results are removed first, so that they cannot be taken for those of this run.
    if let Some(folder) = &args.results {
        results::discard(folder)?;
    }
    let session = match flags(args).and_then(Session::open) {
        Ok(session) => session,
        Err(failure) => {
            earlier_output::discard_without_session(args);
            return match failure.exit_code() {
                // A workspace without memory tests is a run without tests, so `--no-tests` decides
                // the exit code.
                exit::NO_TESTS => report_no_tests(args, failure),
                _ => Err(failure),
            };
        }
    };
    session.announce();
    earlier_output::discard(&session)?;
    run_legs(&session, &interrupt)
}

fn flags(args: &RunArgs) -> Result<Flags, Failure> {
    let RunArgs {
        select,
        failed: _,
        review: _,
        ci,
        baselines,
        part,
        archive,
        schedule,
        limits,
        levels,
        report,
        output,
        cargo,
        results,
        own_pending,
        history,
        libtest,
    } = args;
    let flags = Flags::new(output, cargo).select(select)?.schedule(schedule)?.partition(part)?;
    Ok(Flags {
        archive: archive.clone(),
        ci: ci.clone(),
        baselines: baselines.clone(),
        limits: limits.layer(),
        reports: report.clone(),
        results: results.clone(),
        own_pending: *own_pending,
        history: history.clone(),
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
    Ok(end_without_tests(args))
}

/// The end of a run that has no test to run.
fn end_without_tests(args: &RunArgs) -> u8 {
    let tally = Tally::default();
    let exit_code = reports::without_tests(&args.report.report, &tally, exit::OK);
    if args.output.form.message_format == Format::Json {
        JsonLines::new(Stdout).finished(&tally, exit_code);
    }
    exit_code
}

struct RunState<'a> {
    session: &'a Session,
    runner: Runner<'a>,
    interrupt: &'a Interrupt,
    broadcast: Broadcast,
    tally: Tally,
    listed: Vec<LegTests>,
    store: Store,
    /// By the name of the leg.
    proofs: BTreeMap<String, CheckedProof>,
}

fn run_legs(session: &Session, interrupt: &Interrupt) -> Result<u8, Failure> {
    let options = &session.options;
    let (first, others) = session.legs.split_first().context("the run has no device")?;
    let begun = Legs::open(session).and_then(|mut legs| {
        let first = RunningLeg::begin(session, &mut legs, first)?;
        Ok((legs, first))
    });
    // Presenters start with the first leg that is listed. A failure before that is all that can be
    // reported.
    let Some((mut legs, first)) = interrupt.outlived(begun)? else { return Ok(stopped(options)) };
    let json = options.reporting.format == Format::Json;
    let on_stdout = json.then(|| Box::new(JsonLines::new(Stdout)) as Box<dyn Presenter>);
    let description = RunDescription::of(session);
    if options.selects_all() {
        // As in `discard`, a run does not depend on it.
        let _ = results::forget_failed(&session.results_directory());
    }
    let mut state = RunState {
        session,
        runner: Runner::prepare(session, legs.nvml(), interrupt.clone())?,
        interrupt,
        broadcast: Broadcast::new(&session.report_context(), session.legs.len(), on_stdout),
        tally: Tally::default(),
        listed: Vec::new(),
        store: Store::begin(&session.results_directory(), &description),
        proofs: proof::of(session),
    };
    if let Some(origin) = &description.origin {
        reports::begin(&options.reporting.reports, Some(origin));
        state.broadcast.notify(|to| to.run_started(origin));
    }
    state.run(first);
    for leg in others {
        if state.is_over() && !legs.is_known(leg) {
            state.tally.unstarted.push(leg.name());
            continue;
        }
        let begun = caught(|| RunningLeg::begin(session, &mut legs, leg));
        match interrupt.outlived(begun.unwrap_or_else(|panicked| Err(panicked.into()))) {
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
        let proof = self.proofs.get(&tests.leg.name());
        let count = chosen.run.len() + chosen.unlisted.len();
        self.store.leg(&tests.leg, count, proof);
        self.store.selected(&chosen.run);
        self.broadcast.notify(|to| to.leg_started(&tests.leg, count));
        if let Some(proof) = proof {
            self.broadcast.notify(|to| to.proof(&tests.leg, proof));
        }
        let level = |code| self.session.options.levels.of(code);
        let unlisted = chosen.unlisted.iter().map(|(task, why)| {
            let judged = Judged::without_report(unlisted(why), level);
            (task, TestOutcome::new(judged, Output::default(), Duration::ZERO))
        });
        let ignored = chosen.ignored.iter().map(|task| (task, TestOutcome::ignored()));
        for (task, outcome) in unlisted.chain(ignored) {
            tally.add(&outcome);
            self.store.test(task, &outcome);
            self.broadcast.notify(|to| to.test_finished(task, &outcome));
        }
        if !self.is_over() {
            let Self { runner, broadcast, store, .. } = self;
            let ran = caught(|| leg.run(runner, broadcast, store, &mut tally));
            if let Err(failure) = ran.unwrap_or_else(|panicked| Err(panicked.into())) {
                self.fail(&failure);
            }
            // The broadcast has printed it.
            if let (None, Some(failure)) = (&self.tally.failure, self.broadcast.failure()) {
                self.tally.failure = Some(failure.clone());
            }
            tally.failure.clone_from(&self.tally.failure);
        }
        tally.not_run = count - tally.ran();
        tally.interrupted = self.interrupt.is_set();
        tally.took = started.elapsed();
        self.broadcast.notify(|to| to.leg_finished(&tests.leg, &tally));
        self.tally.join(tally);
        self.listed.push(leg.tests);
    }

    fn finish(mut self) -> u8 {
        self.tally.interrupted |= self.interrupt.is_set();
        self.tally.sort();
        // A baseline can only be known to belong to no test if the tests of all legs are known. The
        // check comes after the run, because it must include the files that the tests have written.
        if self.tally.unstarted.is_empty() {
            let notes = caught(|| bookkeeping::notes(self.session, &self.listed));
            let notes = notes.map_err(Failure::from).and_then(|notes| {
                notes.context("looking for baselines").map_err(Failure::Internal)
            });
            match notes {
                Ok(notes) => {
                    for note in &notes {
                        self.tally.note(note);
                        self.store.note(note);
                        self.broadcast.notify(|to| to.note(note));
                    }
                }
                Err(failure) => self.fail(&failure),
            }
        }
        if self.tally.unstarted.is_empty() && self.session.options.warns_about_filters() {
            for warning in self.session.unmatched_filters(&self.listed) {
                eprint_line!("{} {warning}", style::warning("warning:"));
            }
        }
        let exit_code = self.tally.exit_code(self.session.options.scheduling.no_tests);
        let selected = results::selected(self.session, &self.listed);
        let lost = self.store.end(selected, &self.tally, exit_code);
        #[cfg(feature = "comparison")]
        let lost = lost.or_else(|| super::comparison::append_to_history(self.session));
        self.broadcast.finish(&self.tally, exit_code, lost)
    }
}

/// The finding that stands for the tests of an executable.
fn unlisted(why: &DiscoverError) -> Finding {
    let code = match why.exit_code() {
        exit::NO_DEVICE => Code::NoDevice,
        _ => Code::NotMeasured,
    };
    let finding = Finding::new(code, why.to_string());
    why.hint().into_iter().fold(finding, Finding::hint)
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
        let needs = relations::needs(&tests, &chosen.run, session.roots())?;
        Ok(Self { session, tests, chosen, needs })
    }

    /// A test that needs the figures of others is presented when all tests have ended. Each outcome
    /// is stored before it is presented, because a terminal can be slow.
    fn run(
        &self,
        runner: &Runner<'_>,
        broadcast: &mut Broadcast,
        store: &Store,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let options = &self.session.options;
        let tasks = &self.chosen.run;
        let workers = schedule::workers(
            &options.scheduling,
            &self.tests.leg,
            process::cores(),
            &options.rayon_threads,
        );
        let mut measured_figures = MeasuredFigures::default();
        // Shards leave what needs the figures of others to `report --merge`.
        let is_shard = options.selection.partition.is_some();
        let related: Mutex<BTreeMap<usize, TestRuns>> = Mutex::default();
        let mut held: Vec<(usize, TestOutcome)> = Vec::new();
        let ran = schedule::run_all(
            tasks.len(),
            workers,
            options.scheduling.fail_fast,
            |number, teller| {
                let task = &tasks[number];
                store.started(task);
                let on_progress = move |stage, progress| teller.progress(stage, progress);
                let Some(runs) = runner.measure(task, on_progress)? else { return Ok(None) };
                if self.needs[number].is_none() {
                    let outcome = runner.conclude(task, &runs);
                    store.test(task, &outcome);
                    return Ok(Some(outcome));
                }
                let outcome = match is_shard {
                    true => runner.conclude(task, &runs),
                    false => runner.unrelated(&runs),
                };
                store.unjudged(task, &outcome);
                related.lock().expect("no worker panics").insert(number, runs);
                Ok(Some(outcome))
            },
            |event| match event {
                RunEvent::Started(number) => broadcast.notify(|to| to.test_started(&tasks[number])),
                RunEvent::Progress(number, stage, progress) => {
                    store.progress(&tasks[number], &progress);
                    broadcast.notify(|to| to.progress(&tasks[number], stage, &progress));
                }
                RunEvent::Finished(number, outcome) => {
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
        let mut related = related.into_inner().expect("no worker panics");
        let mut left = 0;
        for (number, mut outcome) in held {
            let task = &tasks[number];
            if let Some((needs, mut runs)) =
                self.needs[number].as_ref().zip(related.remove(&number))
            {
                if is_shard {
                    outcome.across.left = Some(needs.clone());
                    left += 1;
                } else if let Some(report) = &outcome.report {
                    let of = (&report.record, needs);
                    measured_figures
                        .others(task, of, None, |others| runner.relate(task, &mut runs, others));
                    outcome = runner.conclude_related(task, &runs, needs);
                } else {
                    outcome = runner.conclude(task, &runs);
                }
            }
            tally.add(&outcome);
            store.test(task, &outcome);
            broadcast.notify(|to| to.test_finished(task, &outcome));
        }
        if left > 0 {
            eprint_line!(
                "note: limits across tests of {left} are judged by `cargo memcheck report --merge DIR …`"
            );
        }
        ran
    }
}
