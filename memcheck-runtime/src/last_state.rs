//! The state of this test process, for the parent of a process that dies: how far the iterations have
//! come, and the call stack of a thread that a signal ends or asks for its stack. It is in a file that is mapped into
//! memory, so that each iteration costs a few stores and no call of the system for the file.

use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use memcheck_core::space::Space;
use memcheck_core::wire::last_state::{self, Moment, WORDS, Word};
use memcheck_core::wire::protocol::Job;
use memcheck_ledger as ledger;

use crate::executable::{Executable, sources};
use crate::{forked, os};

/// The source file of the test of this process.
static FILE: OnceLock<&'static str> = OnceLock::new();
static NUMBERS: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// Creates the file next to the report. Without it, the parent knows only how the process ended.
/// `file` is that of the test.
pub(crate) fn begin(file: &'static str, job: &Job) {
    FILE.get_or_init(|| file);
    let (warmup, measured) = (job.limits.warmup.value, job.limits.iterations.value);
    let content = last_state::initial(warmup, measured, &sources(job.sources()));
    if let Ok(numbers) = os::map_numbers(&last_state::path(&job.report), &content, WORDS) {
        NUMBERS.get_or_init(|| numbers);
    }
}

/// Stores the stack of each thread that a signal ends from now on, and of this one, which is about to
/// run the body, when the parent asks for it. Must be called after the libraries
/// of the device were loaded, because the stack is walked with the tables of the loaded ones.
pub(crate) fn follow_signals() {
    if let Some(numbers) = NUMBERS.get() {
        os::follow_signals(numbers, Executable::find());
        take_thread();
    }
}

/// This thread is the one whose stack the parent can ask for.
fn take_thread() {
    let Some(numbers) = NUMBERS.get() else { return };
    if !forked::is_child() {
        numbers[Word::Thread as usize].store(os::thread_number(), Release);
    }
}

/// The iterations are called here. Of the files, the parent knows that of the test only.
pub(crate) fn iterate_at(caller: &Location<'_>) {
    let (Some(numbers), Some(file)) = (NUMBERS.get(), FILE.get()) else { return };
    if caller.file() == *file && !forked::is_child() {
        numbers[Word::Iterates as usize].store(caller.line().into(), Relaxed);
    }
}

/// An iteration begins, by its index.
pub(crate) fn begin_iteration(index: usize) {
    // A body can run its iterations on a thread of its own.
    take_thread();
    enter(Moment::In(u32::try_from(index).unwrap_or(u32::MAX)));
}

/// An iteration has ended, by its index.
pub(crate) fn end_iteration(index: usize) {
    enter(Moment::After(u32::try_from(index).unwrap_or(u32::MAX)));
}

/// The body runs again after its iterations.
pub(crate) fn begin_rounds() {
    enter(Moment::FurtherRound);
}

fn enter(moment: Moment) {
    let Some(numbers) = NUMBERS.get() else { return };
    let current = &numbers[Word::Moment as usize];
    // The iterations of a further round are not those of the test.
    if current.load(Relaxed) == Moment::FurtherRound.encode() || forked::is_child() {
        return;
    }
    numbers[Word::Live as usize].store(ledger::snapshot(Space::Host).live, Relaxed);
    current.store(moment.encode(), Release);
}
