//! The fault sweep of a test, in a process of its own: refuses the device allocations of one
//! iteration in turn. An iteration without a refusal follows each, and is compared with one before.
//!
//! ```text
//! warm-up ─► reference, reference ─► requests ─► for each selected request:
//!            (until two are equal)                refuse it ─► an iteration without a refusal
//!                                                 if memory stays or figures differ: both again
//! ```
//!
//! All iterations after the warm-up have the same index, so that a body that uses the index does
//! the same work in each.

mod figures;
mod polling;
mod select;
mod watch;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memcheck_core::judgement::verdict::says_out_of_memory;
use memcheck_core::measurement::fault_sweep::{
    Calls, Effect, LeftBlocks, SweepResult, UnsafeAllocation,
};
use memcheck_core::measurement::stack::Sources;
use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_core::sweep;
use memcheck_ledger::{self as ledger, CounterSnapshot, site};
use rustc_hash::FxHashMap;

use self::figures::{MeasuredIteration, snapshots};
use self::watch::BodyWatch;
use crate::operations::Operations;
use crate::outcome::{Returned, panic_message};
use crate::probe::tensor;
use crate::refusal::{self, RefusalRequest};

use crate::executable::Executable;

pub(crate) use watch::Write;

/// The iterations that are tried until two in a row have the same figures.
const REFERENCES: usize = 5;
/// A body hangs if it takes longer than this and [`SLOWER`] times an iteration.
const HANGS: Duration = Duration::from_secs(10);
const SLOWER: u32 = 20;
/// The longest wait for other threads to free memory.
const PATIENCE: Duration = Duration::from_millis(100);
/// The largest number of call stacks of left blocks that are kept for a refusal.
const MOST_STACKS: usize = 16;

/// The settings of a sweep.
pub(crate) struct Settings {
    /// The allocations that are refused.
    pub(crate) sweep: sweep::FaultSweep,
    /// The moment at which the sweep must have ended.
    pub(crate) deadline: Instant,
    /// The source file of the test, as the compiler was given it.
    pub(crate) file: &'static str,
    pub(crate) sources: Sources,
    /// Writes the result so far.
    pub(crate) write: Write,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("sweep", &self.sweep).finish_non_exhaustive()
    }
}

/// The sweep of the process.
#[derive(Debug)]
pub(crate) struct Sweep {
    settings: Settings,
    /// `None` while the iterations run.
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    result: SweepResult,
    executable: Executable,
    /// True if the call stacks of allocations can be recorded.
    has_sites: bool,
    /// The iteration of birth of the next iteration's blocks.
    birth: u32,
    /// The longest iteration without a refusal.
    slowest: Duration,
    reference: MeasuredIteration,
    /// The operations before the first iteration. Each iteration has those that the first one had,
    /// so that a refusal is the only difference.
    operations: Operations,
}

/// The end of an iteration. `R` is an error that the body returned.
enum End<R> {
    Returned,
    Error(R),
    /// The message, and true if the panic is an `unwrap` of the out-of-memory error in the test.
    Panicked(String, bool),
}

/// The source file of the last panic.
static PANICKED_IN: Mutex<String> = Mutex::new(String::new());

impl Sweep {
    pub(crate) fn new(settings: Settings) -> Self {
        let sources = Some(settings.sources.clone());
        let state = State {
            result: SweepResult { sources, ..SweepResult::default() },
            executable: Executable::find(),
            has_sites: site::is_on(),
            birth: 1,
            slowest: Duration::ZERO,
            reference: MeasuredIteration::default(),
            operations: Operations::now(),
        };
        Self { settings, state: Mutex::new(Some(state)) }
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result so far.
    pub(crate) fn into_result(self) -> SweepResult {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let dropped = || SweepResult {
            ended: Some("the body dropped the future of its iterations".to_owned()),
            ..SweepResult::default()
        };
        state.map_or_else(dropped, |state| state.result)
    }

    /// Sweeps over the iterations of `body`. `progress` gets the number of refusals so far and of
    /// those planned. Returns an error of the body without a refusal.
    pub(crate) fn run<R: Returned>(
        &self,
        warmup: usize,
        mut body: impl FnMut(usize) -> R,
        progress: impl Fn(u64, u64),
    ) -> R {
        polling::run(self.run_async(warmup, async |index| body(index), progress))
    }

    /// [`Sweep::run`] for a body that is awaited.
    pub(crate) async fn run_async<R: Returned>(
        &self,
        warmup: usize,
        body: impl AsyncFnMut(usize) -> R,
        progress: impl Fn(u64, u64),
    ) -> R {
        let Some(mut state) = self.state().take() else { return R::done() };
        let swept = polling::quietly(self.sweep(&mut state, warmup, body, progress)).await;
        *self.state() = Some(state);
        swept.unwrap_or_else(|message| std::panic::resume_unwind(Box::new(message)))
    }

    /// `Err` is the message of a panic in an iteration without a refusal, which is not a result of
    /// the sweep.
    async fn sweep<R: Returned>(
        &self,
        state: &mut State,
        warmup: usize,
        mut body: impl AsyncFnMut(usize) -> R,
        progress: impl Fn(u64, u64),
    ) -> Result<R, String> {
        // The output of a panic would resolve a backtrace at each refusal.
        std::panic::set_hook(Box::new(|info| {
            let _quiet = quiet::enter();
            let file = info.location().map(|place| place.file().to_owned()).unwrap_or_default();
            *PANICKED_IN.lock().unwrap_or_else(PoisonError::into_inner) = file;
        }));
        let watch = match BodyWatch::start(std::sync::Arc::clone(&self.settings.write)) {
            Ok(watch) => watch,
            Err(error) => {
                state.result.ended = Some(format!("no thread could watch it: {error}"));
                return Ok(R::done());
            }
        };
        let file = self.settings.file;
        let mut iterate = async |state: &mut State, index: usize| {
            state.iterate(file, async { body(index).await }).await
        };
        state.record_sites(false);
        for index in 0..warmup {
            if let (Some(error), _) = iterate(state, index).await.without_refusal(state)? {
                return Ok(error);
            }
        }
        let mut body = async |state: &mut State| iterate(state, warmup).await;
        state.result.unsteady = true;
        for round in 0..REFERENCES {
            let (error, measured) = body(state).await.without_refusal(state)?;
            if let Some(error) = error {
                return Ok(error);
            }
            state.result.unsteady &= round == 0 || !measured.is_alike(&state.reference);
            state.reference = measured;
            if !state.result.unsteady {
                break;
            }
        }
        state.record_sites(true);
        refusal::begin(None);
        let ended = body(state).await;
        refusal::end();
        state.record_sites(false);
        if let (Some(error), _) = ended.without_refusal(state)? {
            return Ok(error);
        }
        let (count, requests) = refusal::requests();
        let contexts: Vec<u32> = requests.iter().map(|request| request.context).collect();
        let selected = select::select(count, &contexts, self.settings.sweep.most_of(count));
        state.result.allocations = count;
        state.result.selected = selected.len() as u64;
        for (done, &number) in (1..).zip(&selected) {
            let began = Instant::now();
            let most = (state.slowest * SLOWER).max(HANGS);
            let left = self.settings.deadline.saturating_duration_since(began);
            // With less time a slow body would be taken for one that hangs.
            if left < state.slowest * SLOWER {
                state.result.ended = Some(
                    "the time-out of the test was near: raise `timeout`, or set `fault_sweep` to a number"
                        .to_owned(),
                );
                break;
            }
            let request = usize::try_from(number - 1).ok().and_then(|at| requests.get(at));
            let request = request.copied().unwrap_or(RefusalRequest { context: 0, bytes: 0 });
            let unfinished = state.unfinished(number, request);
            // Before the refusal, because the body may end the process.
            (self.settings.write)(&unfinished);
            watch.begin(most.min(left), unfinished);
            let goes_on = state.refuse(number, request, &mut body).await;
            watch.end();
            progress(done, selected.len() as u64);
            if !goes_on {
                break;
            }
        }
        Ok(R::done())
    }
}

/// The reason of a sweep whose body fails anyway.
const FAILED: &str = "the body failed in an iteration without a refusal";

/// An iteration that has ended.
struct Ended<R> {
    end: End<R>,
    measured: MeasuredIteration,
}

impl<R> Ended<R> {
    /// The error of an iteration without a refusal, which ends the sweep. `Err` is the message of a
    /// panic.
    fn without_refusal(self, state: &mut State) -> Result<(Option<R>, MeasuredIteration), String> {
        match self.end {
            End::Returned => Ok((None, self.measured)),
            End::Error(error) => {
                state.result.ended = Some(FAILED.to_owned());
                Ok((Some(error), self.measured))
            }
            End::Panicked(message, _) => Err(message),
        }
    }
}

impl State {
    /// Call stacks take most of the time of an iteration, so they are recorded in few.
    fn record_sites(&self, on: bool) {
        if self.has_sites && on {
            site::resume();
        } else {
            site::stop();
        }
    }

    /// Runs one iteration.
    async fn iterate<R: Returned>(
        &mut self,
        file: &str,
        body: impl Future<Output = R>,
    ) -> Ended<R> {
        match self.birth {
            1 => self.operations = Operations::now(),
            _ => self.operations.permit_again(),
        }
        // A birth for each iteration, although all have one index, so that `left` can distinguish
        // them.
        self.birth += 1;
        let before = snapshots();
        let began = Instant::now();
        ledger::begin_iteration(self.birth);
        let body = async {
            let returned = body.await;
            tensor::settle();
            returned
        };
        let result = polling::caught(body).await;
        ledger::end_iteration();
        let end = match result {
            Ok(returned) if returned.is_error() => End::Error(returned),
            Ok(_) => End::Returned,
            Err(payload) => panicked(file, payload),
        };
        if !matches!(end, End::Panicked(..)) {
            self.slowest = self.slowest.max(began.elapsed());
        }
        Ended { end, measured: MeasuredIteration::between(&before, &snapshots()) }
    }

    /// The result if the process ends while the body handles this refusal.
    fn unfinished(&self, number: u64, request: RefusalRequest) -> SweepResult {
        let mut result = self.result.clone();
        result.refused += 1;
        result.ended = Some("its process ended".to_owned());
        result.failures.push(self.failure(number, request, Effect::Ended));
        result
    }

    fn failure(&self, number: u64, request: RefusalRequest, effect: Effect) -> UnsafeAllocation {
        UnsafeAllocation {
            number,
            requested: request.bytes,
            calls: self.calls(request.context),
            effect,
        }
    }

    fn calls(&self, context: u32) -> Calls {
        let frames = site::context(context).map(|context| context.frames).unwrap_or_default();
        Calls::Addresses(self.executable.calls(&frames))
    }

    /// Refuses the allocation with this number once, and again if the effect may be one of a first
    /// time. False if the body cannot go on.
    async fn refuse<R: Returned>(
        &mut self,
        number: u64,
        request: RefusalRequest,
        body: &mut impl AsyncFnMut(&mut Self) -> Ended<R>,
    ) -> bool {
        let mut before = snapshots();
        refusal::begin(Some(number));
        let Ended { end, .. } = body(self).await;
        // A body that makes fewer allocations than before has not been refused any.
        if !refusal::end() {
            return true;
        }
        self.result.refused += 1;
        match end {
            End::Returned => self.result.recovered += 1,
            End::Error(error) => {
                // Before the next snapshot, because an error can hold memory.
                drop(error);
                self.result.errors += 1;
            }
            End::Panicked(_, true) => self.result.errors += 1,
            End::Panicked(message, false) => {
                let failure = self.failure(number, request, Effect::Panicked { message });
                self.result.failures.push(failure);
            }
        }
        let Some(next) = self.next(number, request, body).await else { return false };
        let reference = self.reference.clone();
        let is_as_before =
            reference.left_since(&before).is_empty() && reference.difference(&next).is_none();
        // Figures that differ without a refusal too prove nothing about one.
        if is_as_before || self.result.unsteady {
            return true;
        }
        // The second round: memory that is allocated once, and state that is set once, stay as the
        // first round left them.
        let Some(reference) = self.next(number, request, body).await else { return false };
        before = snapshots();
        // `iterate` increments the birth before it uses it.
        let first = self.birth + 1;
        self.record_sites(true);
        refusal::begin(Some(number));
        // The first round has judged how the body ends.
        drop(body(self).await);
        let was_refused = refusal::end();
        self.record_sites(false);
        if !was_refused {
            return true;
        }
        let Some(next) = self.next(number, request, body).await else { return false };
        // Only the second round waits, because most refusals need none.
        for (space, bytes) in patiently(&reference, &before).await {
            let blocks = self.left(space, first);
            let effect = Effect::Left { space, bytes, blocks };
            self.result.failures.push(self.failure(number, request, effect));
        }
        if let Some((space, figure, before, after)) = reference.difference(&next) {
            let figure = figure.to_owned();
            let effect = Effect::Differs { space, figure, before, after };
            self.result.failures.push(self.failure(number, request, effect));
        }
        // State that the first round has set once changes all later iterations too.
        self.reference = reference;
        true
    }

    /// Runs an iteration without a refusal. `None` if it fails, which is the effect of the refusal
    /// before it.
    async fn next<R: Returned>(
        &mut self,
        number: u64,
        request: RefusalRequest,
        body: &mut impl AsyncFnMut(&mut Self) -> Ended<R>,
    ) -> Option<MeasuredIteration> {
        let Ended { end, measured } = body(self).await;
        let error = match end {
            End::Returned => return Some(measured),
            End::Error(error) => error.report().err().unwrap_or_default(),
            End::Panicked(message, _) => message,
        };
        let failure = self.failure(number, request, Effect::NextFailed { error });
        self.result.failures.push(failure);
        self.result.ended = Some("an iteration after a refusal failed".to_owned());
        None
    }

    /// The live blocks of a space that were born in iteration `first` or later, by call stack.
    fn left(&self, space: Space, first: u32) -> Vec<LeftBlocks> {
        let mut by_context: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
        ledger::each(|_, block| {
            if block.space == space && block.origin.birth >= first {
                let (bytes, count) = by_context.entry(block.origin.context).or_default();
                *bytes += block.size;
                *count += 1;
            }
        });
        let mut blocks: Vec<(u32, (u64, u64))> = by_context.into_iter().collect();
        blocks.sort_by_key(|&(context, (bytes, _))| (std::cmp::Reverse(bytes), context));
        blocks.truncate(MOST_STACKS);
        let of = |(context, (bytes, count))| {
            let calls = self.calls(context);
            LeftBlocks { calls, bytes, count }
        };
        blocks.into_iter().map(of).collect()
    }
}

/// The bytes that are left, after other threads and tasks had time to free theirs.
async fn patiently(
    reference: &MeasuredIteration,
    before: &BTreeMap<Space, CounterSnapshot>,
) -> BTreeMap<Space, u64> {
    let began = Instant::now();
    loop {
        let left = reference.left_since(before);
        if left.is_empty() || began.elapsed() > PATIENCE {
            return left;
        }
        std::thread::sleep(Duration::from_millis(1));
        polling::let_others_run().await;
    }
}

/// An `unwrap` of the error in the test itself is the test's way to return it. Any other panic is
/// one of the code under test.
fn panicked<R>(file: &str, payload: Box<dyn Any + Send>) -> End<R> {
    let message = panic_message(&*payload);
    drop(payload);
    let place = PANICKED_IN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_unwrap = place == file && says_out_of_memory(&message);
    End::Panicked(message, is_unwrap)
}
