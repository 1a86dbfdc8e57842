//! Handles blocks that are still live after the body has returned. It waits for threads that are
//! about to free them, and runs a second round of the body, because blocks that every round leaves
//! behind must be distinguished from blocks that are allocated once per process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memcheck_core::limits::{Limits, Source};
use memcheck_core::measurement::record::{Outcome, Record};
use memcheck_core::size::both;
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::Reach;
use memcheck_ledger as ledger;

use super::body;
use crate::clock::Clock;
use crate::description::Description;
use crate::device::Device;
use crate::os::Silence;
use crate::trial::{Case, Trial};

/// The longest wait for other threads before the last census, without the time for which this
/// thread itself waits for a processor.
const PATIENCE: Duration = Duration::from_millis(100);

/// The spaces to which `max_retained` applies.
fn limited(judged: &[Space]) -> impl Iterator<Item = Space> {
    let is_of_gpu = judged.iter().any(|space| space.is_device());
    let is_limited =
        move |space: &Space| !space.has_own_limit() && space.is_of_driver() == is_of_gpu;
    judged.iter().copied().filter(is_limited)
}

/// Live bytes of these spaces in excess of the limit.
fn excess(judged: &[Space], limits: &Limits) -> u64 {
    let limit = limits.max_retained.value;
    limited(judged).map(|space| ledger::snapshot(space).live.saturating_sub(limit)).sum()
}

/// Waits for a bounded time until other threads have freed the remaining blocks of the body.
/// Returns a note for the report if they have freed any. The caller must be quiet.
pub(super) fn wait_for_frees(judged: &[Space], limits: &Limits) -> Option<String> {
    let live = || -> u64 { limited(judged).map(|space| ledger::snapshot(space).live).sum() };
    let before = live();
    if excess(judged, limits) == 0 {
        return None;
    }
    let began = Instant::now();
    let clock = Clock::start();
    while excess(judged, limits) > 0 && clock.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    let freed = before.saturating_sub(live());
    (freed > 0).then(|| {
        format!(
            "other threads freed {} within {} ms after the body had returned",
            both(freed),
            began.elapsed().as_millis()
        )
    })
}

/// Runs the body once more if it left more than the built-in limit allows, and records the bytes
/// that this round added. A round that fails adds a note only.
pub(super) fn run_second(
    description: &'static Description,
    (device, case): (&Device, Case),
    record: &mut Record,
) {
    let limits = record.limits.clone();
    let is_built_in = limits.max_retained.source == Source::BuiltIn;
    // A limit that the user has set applies to all bytes that the first round left.
    if !is_built_in || record.outcome != Outcome::Returned || excess(&record.judged, &limits) == 0 {
        return;
    }
    let live = |judged: &[Space]| -> BTreeMap<Space, u64> {
        judged.iter().map(|&space| (space, ledger::snapshot(space).live)).collect()
    };
    let before = live(&record.judged);
    let mut trial = Trial::new(device.clone(), (&limits, Reach::Screen), case, None);
    let silence = Silence::begin();
    let outcome = body::run(description, &mut trial);
    drop(trial);
    drop(silence);
    if outcome != Outcome::Returned {
        record.notes.push(
            "the body cannot run twice in one process: memory that it keeps once per process \
             counts as retained"
                .to_owned(),
        );
        return;
    }
    wait_for_frees(&record.judged, &limits);
    let after = live(&record.judged);
    for (space, measured) in &mut record.spaces {
        if let (Some(before), Some(after)) = (before.get(space), after.get(space)) {
            measured.retained_again = Some(after.saturating_sub(*before));
        }
    }
}
