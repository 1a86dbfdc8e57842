//! Runs the body of a test once.

use std::panic::AssertUnwindSafe;

use memcheck_core::measurement::record::Outcome;
use memcheck_core::quiet;
use memcheck_ledger::site;

use super::job;
use crate::description::Description;
use crate::outcome;
use crate::trial::Trial;

/// Runs the body, catches its panics and counts its allocations. Does not return in a child that
/// the body has forked.
pub(super) fn run(description: &Description, trial: &mut Trial) -> Outcome {
    // Printing a panic resolves a backtrace, for which std allocates tens of MiB and never frees
    // them. They are not the workload's memory, so the thread is quiet while it prints.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _quiet = quiet::enter();
        print(info);
    }));
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        quiet::lifted(|| site::with_fixed_frames(|| (description.body)(trial)))
    }));
    job::end_if_forked();
    match result {
        Ok(Ok(())) => Outcome::Returned,
        Ok(Err(error)) => {
            eprintln!("Error: {error}");
            Outcome::Failed { error }
        }
        Err(payload) => Outcome::Panicked { message: outcome::panic_message(&*payload) },
    }
}
