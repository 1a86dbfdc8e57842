//! Handles blocks that are still live after the body has returned. It waits for threads that are
//! about to free them, and runs further rounds of the body, because blocks that every round leaves
//! behind must be distinguished from blocks that are allocated once per process, or by the first
//! threads that fill a pool.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memcheck_core::limits::{Limits, Source};
use memcheck_core::measurement::record::{Outcome, Record};
use memcheck_core::size::both;
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::Reach;
use memcheck_ledger as ledger;

use super::body;
use crate::available::available;
use crate::clock::Clock;
use crate::description::Description;
use crate::device::Device;
use crate::last_state;
use crate::operations::Operations;
use crate::os::Silence;
use crate::trial::{Case, Trial};

/// The number of rounds that must all leave the same bytes before they count as left by every round.
/// A regex has a pool of memory with an entry for its first thread and 8 others, which the next
/// threads fill: each round that starts a thread fills one of them.
const EQUAL_ROUNDS: usize = 9;

/// The most further rounds, for a body that leaves other bytes in each.
const MOST_ROUNDS: usize = 3 * EQUAL_ROUNDS;

/// The spaces to which `max_retained` applies.
fn limited(judged: &[Space]) -> impl Iterator<Item = Space> {
    let is_of_gpu = judged.iter().any(|space| space.is_device());
    let is_limited =
        move |space: &Space| !space.has_own_limit() && space.is_of_driver() == is_of_gpu;
    judged.iter().copied().filter(is_limited)
}

/// Live bytes by space.
type Live = BTreeMap<Space, u64>;

fn live(judged: &[Space]) -> Live {
    judged.iter().map(|&space| (space, ledger::snapshot(space).live)).collect()
}

/// The bytes that are live in addition to `before`.
fn added(before: &Live, space: Space) -> u64 {
    ledger::snapshot(space).live.saturating_sub(before.get(&space).copied().unwrap_or(0))
}

/// The bytes in addition to `before` that are above the limit.
fn excess(judged: &[Space], limits: &Limits, before: &Live) -> u64 {
    let limit = limits.max_retained.value;
    limited(judged).map(|space| added(before, space).saturating_sub(limit)).sum()
}

/// Waits until other threads have freed the remaining blocks of the body, at most for `patience`,
/// without the time for which this thread itself waits for a processor. Returns a note for the
/// report if they have freed any. The caller must be quiet.
pub(super) fn wait_for_frees(
    judged: &[Space],
    limits: &Limits,
    patience: Duration,
) -> Option<String> {
    wait(judged, limits, (&Live::new(), patience))
}

fn wait(
    judged: &[Space],
    limits: &Limits,
    (before, patience): (&Live, Duration),
) -> Option<String> {
    let live = || -> u64 { limited(judged).map(|space| ledger::snapshot(space).live).sum() };
    let at_return = live();
    if excess(judged, limits, before) == 0 {
        return None;
    }
    let began = Instant::now();
    let clock = Clock::start();
    while excess(judged, limits, before) > 0 && clock.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    let freed = at_return.saturating_sub(live());
    (freed > 0).then(|| {
        format!(
            "other threads freed {} within {} ms after the body had returned",
            both(freed),
            began.elapsed().as_millis()
        )
    })
}

/// Runs further rounds of the body if it left more than the built-in limit allows, and records the
/// bytes that the last of them added. If the first fails, it adds a note only.
pub(super) fn run_further(
    description: &'static Description,
    (device, case, mut operations): (&Device, Case, Operations),
    record: &mut Record,
) {
    let limits = record.limits.clone();
    let is_built_in = limits.max_retained.source == Source::BuiltIn;
    let judged = record.judged.clone();
    // A limit that the user has set applies to all bytes that the first round left.
    if !is_built_in
        || record.outcome != Outcome::Returned
        || excess(&judged, &limits, &Live::new()) == 0
    {
        return;
    }
    last_state::begin_rounds();
    let clock = Clock::start();
    let mut rounds: Vec<Live> = Vec::new();
    while is_needed(&rounds, &clock, &limits) {
        let before = live(&judged);
        // A round may compute as much as the one before it.
        operations.permit_again();
        operations = Operations::now();
        let births_from = ledger::iteration().saturating_add(1);
        ledger::begin_iteration(births_from);
        let mut trial = Trial::new(device.clone(), (&limits, Reach::Screen), case.clone(), None)
            .with_births_from(births_from);
        let silence = Silence::begin();
        let outcome = body::run(description, &mut trial);
        let patience = trial.patience();
        drop(trial);
        let at_return: Live = judged.iter().map(|&space| (space, added(&before, space))).collect();
        drop(silence);
        if outcome != Outcome::Returned {
            break;
        }
        wait(&judged, &limits, (&before, patience));
        let own = own_blocks(births_from);
        // No more than it had added when its body returned: a body that replaces a block adds none. A
        // thread that frees what an earlier round has left must not hide that this one leaves as much.
        let left: Live = at_return
            .iter()
            .map(|(&space, &added)| (space, added.min(own.get(&space).copied().unwrap_or(0))))
            .collect();
        let within = |live: &Live| {
            limited(&judged)
                .all(|space| live.get(&space).copied().unwrap_or(0) <= limits.max_retained.value)
        };
        let was_within = rounds.last().is_some_and(within);
        let is_within = within(&left);
        if was_within && !is_within {
            rounds.pop();
        }
        rounds.push(left);
        if is_within {
            if was_within || within(&own) {
                break;
            }
            // Its own blocks are live, in place of others that were freed while the body ran. Either it
            // replaces them, or a thread of an earlier round freed them just then. Such a thread frees at
            // another moment of the next round, which begins later than the others.
            std::thread::sleep(patience / 2);
        }
    }
    let Some(last) = rounds.last() else {
        record.notes.push(
            "the body cannot run twice in one process: memory that it keeps once per process \
             counts as retained"
                .to_owned(),
        );
        return;
    };
    for (space, measured) in &mut record.spaces {
        measured.retained_again = last.get(space).copied();
        measured.rounds = u32::try_from(rounds.len()).ok().filter(|&rounds| rounds > 1);
    }
}

/// The bytes of the blocks of a round that are live now.
fn own_blocks(births_from: u32) -> Live {
    let mut own = Live::new();
    for (kind, count) in ledger::census().iter().filter(|(kind, _)| kind.birth >= births_from) {
        *own.entry(kind.space).or_default() += kind.size * count;
    }
    own
}

/// True if another round can show that the bytes of these rounds are not left by every one, and if
/// there are time and memory for it.
fn is_needed(rounds: &[Live], clock: &Clock, limits: &Limits) -> bool {
    let Some(last) = rounds.last() else { return true };
    let equal = rounds.iter().rev().take_while(|round| *round == last).count();
    let count = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
    let each = clock.elapsed() / count;
    let on_host: u64 = last.iter().filter(|(space, _)| !space.is_of_driver()).map(|it| *it.1).sum();
    equal < EQUAL_ROUNDS
        && rounds.len() < MOST_ROUNDS
        && each.saturating_mul(count.saturating_add(1)) <= limits.evidence.value
        && on_host <= available().unwrap_or(u64::MAX) / 4
}
