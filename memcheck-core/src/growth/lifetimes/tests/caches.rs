//! Large caches, rings and pools are no leaks while they fill.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use super::super::events::Look;
use super::super::misses::may_be_misses;
use super::super::programs::matrix::alone;
use super::super::programs::{CACHES, LEAKS, Program, ProgramBlock, Random};
use super::super::{Budget, Decision, History, Living, Open, step};

const MOST: u32 = 1_002;

#[test]
fn no_family_of_caches_is_a_leak() {
    let mut random = Random(61);
    for family in CACHES {
        let program = alone(family, &mut random, MOST);
        let (decision, ..) = program.run(&Budget::of(MOST).to_the_end());
        let is_open = |open: &Open| matches!(open, Open::Slows | Open::Moves | Open::Rare);
        let is_no_leak = match &decision {
            Decision::Clean { .. } => true,
            Decision::Open(undecided) => is_open(&undecided.open),
            Decision::Leak(_) | Decision::More(_) => false,
        };
        assert!(is_no_leak, "{}: {decision:?}", family.name);
    }
}

#[test]
fn a_long_ring_is_a_leak_until_it_is_full() {
    let ring =
        (0..MOST).map(|at| ProgramBlock { site: 0, size: 64, born: Some(at), died: at + 500 });
    let ring = Program { blocks: ring.collect(), ..Program::new(MOST) };
    let decide = |budget: &Budget| ring.run(budget).0;
    assert!(matches!(decide(&Budget::of(MOST)), Decision::Leak(_)));
    assert!(matches!(decide(&Budget::of(MOST).to_the_end()), Decision::Clean { .. }));
}

#[test]
fn misses_that_get_rarer_are_not_growth_at_a_steady_rate() {
    let look = Look { horizon: 160, quiet: 64, is_last: true, measured: 10 };
    let mut random = Random(62);
    let mut events = |share: &dyn Fn(f64) -> f64| -> Vec<i64> {
        (0..1_000).map(|at| i64::from(random.chance(share(f64::from(at))))).collect()
    };
    for keys in [512.0, 2_048.0, 16_384.0_f64] {
        assert!(may_be_misses(&events(&|at| (-at / keys).exp()), &look), "{keys}");
    }
    for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
        assert!(!may_be_misses(&events(&|_| share), &look), "{share}");
    }
    // A cache of 32 keys has filled, and something else goes on.
    let mut both = events(&|at| (-at / 32.0).exp());
    both.iter_mut().step_by(20).for_each(|events| *events = 1);
    assert!(!may_be_misses(&both, &look));
    let first = Look { is_last: false, ..look };
    assert!(!may_be_misses(&events(&|at| (-at / 512.0).exp()), &first), "more can be seen");
}

/// A map on the CPU that is asked for one of 16,384 keys in each iteration, as it was measured. An entry
/// is four blocks, one of which has a size that the table had too.
#[test]
fn a_cache_is_no_leak_if_its_table_had_the_size_of_an_entry() {
    const HITS: [u32; 20] = [
        57, 119, 203, 249, 332, 466, 474, 563, 569, 653, 689, 709, 736, 792, 809, 884, 891, 907,
        941, 969,
    ];
    let tables = [(0, 3, 84), (3, 7, 152), (7, 14, 288), (14, 28, 560)];
    let decide = |is_hit: &mut dyn FnMut(u32) -> bool| {
        let block = |site, size, born, died| ProgramBlock { site, size, born: Some(born), died };
        let tables = tables.iter().map(|&(born, died, size)| block(9, size, born, died));
        let mut blocks: Vec<ProgramBlock> = tables.collect();
        for at in (0..MOST).filter(|&at| !is_hit(at)) {
            let entry = [32, 152, 56, 8].into_iter().zip(1..);
            blocks.extend(entry.map(|(size, site)| block(site, size, at, u32::MAX)));
        }
        Program { blocks, ..Program::new(MOST) }.run(&Budget::of(MOST).to_the_end()).0
    };
    let cache = decide(&mut |at| HITS.contains(&at));
    assert!(matches!(&cache, Decision::Open(open) if open.open == Open::Slows), "{cache:?}");
    let mut random = Random(64);
    let leak = decide(&mut |_| random.chance(0.2));
    assert!(matches!(leak, Decision::Leak(_)), "{leak:?}");
}

#[test]
fn a_buffer_that_doubles_beside_a_cache_is_not_its_table() {
    let mut random = Random(63);
    let cache = CACHES.iter().find(|family| family.name.starts_with("map of 512 to 2,048"));
    let buffer = LEAKS.iter().find(|family| family.name == "Vec by 2 for ever");
    let (cache, buffer) = (cache.unwrap(), buffer.unwrap());
    for _ in 0..4 {
        let both = cache.program(&mut random, MOST, 0, 4_096);
        let both = both.and(&buffer.program(&mut random, MOST, 1, 1_024));
        let decision = both.run(&Budget::of(MOST).to_the_end()).0;
        assert!(matches!(decision, Decision::Leak(_)), "{decision:?}");
    }
}

/// A run of 6,000 iterations, in which each block dies as `dies(born, now)` says, in microseconds since
/// the first iteration. Iterations take 180 µs at first and 60 µs at last, and
/// some of them 300 µs more.
pub(super) fn run_with_a_clock(
    has_clock: bool,
    births: impl Fn(u32) -> u32,
    dies: impl Fn(u64, u64) -> bool,
) -> Decision {
    const ITERATIONS: u32 = 6_000;
    let mut history = History::new(2);
    let (mut time, mut waiting) = (0u64, VecDeque::new());
    let block = |born, count| Living { site: Some(1), size: 4_096, born: Some(born), count };
    for at in 0..ITERATIONS {
        time += u64::from(180 - at / 50) + if at * 7_919 % 23 == 0 { 300 } else { 0 };
        let mut gone = Vec::new();
        while let Some(&(born, began)) = waiting.front()
            && dies(began, time)
        {
            waiting.pop_front();
            gone.push(block(born, 1));
        }
        let came = births(at);
        waiting.extend((0..came).map(|_| (at, time)));
        if has_clock {
            history.set_time(Duration::from_micros(time));
        }
        history.advance([block(at, u64::from(came))], gone);
    }
    step(&history, &Budget::of(ITERATIONS))
}

#[test]
fn memory_that_lives_for_a_time_is_no_leak_while_iterations_get_faster() {
    let expires = |began, now| now - began > 50_000;
    let with = run_with_a_clock(true, |_| 1, expires);
    assert!(matches!(with, Decision::Clean { .. }), "{with:?}");
    let without = run_with_a_clock(false, |_| 1, expires);
    assert!(matches!(without, Decision::Leak(_)), "{without:?}");
}

#[test]
fn a_clock_hides_no_leak() {
    // A worker takes 100 µs for each block, of which more and more come in a time.
    let done = Cell::new(0);
    let backlog = run_with_a_clock(
        true,
        |_| 1,
        |_, now| {
            let is_done = now >= done.get() + 100;
            if is_done {
                done.set(done.get().max(now - 100) + 100);
            }
            is_done
        },
    );
    assert!(!matches!(backlog, Decision::Clean { .. }), "{backlog:?}");
    let kept = run_with_a_clock(true, |_| 1, |_, _| false);
    assert!(matches!(&kept, Decision::Leak(leak) if leak.rate.rounded() == 4_096), "{kept:?}");
    // More and more blocks are born in each iteration, and live for a time.
    let more = run_with_a_clock(true, |at| 1 + at / 500, |began, now| now - began > 50_000);
    assert!(!matches!(more, Decision::Clean { .. }), "{more:?}");
}
