//! Verdicts on single programs. The first look comes after 2 warm-up and 10 measured iterations.

use super::super::programs::{Program, ProgramBlock, Random};
use super::super::{
    Budget, Certainty, Decision, History, Leak, Living, Open, PartPattern, Rate, step,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A program of one call site, from the birth, death and size of its blocks.
fn program(blocks: impl IntoIterator<Item = (u32, u32, u64)>) -> Program {
    let block = |(born, died, size)| ProgramBlock { site: 0, size, born: Some(born), died };
    Program { blocks: blocks.into_iter().map(block).collect(), ..Program::new(1_100) }
}

fn keeps(size: u64, at: impl Fn(u32) -> bool) -> Program {
    program((0..1_100).filter(|&born| at(born)).map(|born| (born, u32::MAX, size)))
}

fn decide(program: &Program) -> Decision {
    program.run(&Budget::default()).0
}

fn leak(program: &Program) -> Leak {
    match decide(program) {
        Decision::Leak(leak) => leak,
        other => panic!("{other:?}"),
    }
}

fn is_clean(program: &Program) -> bool {
    matches!(decide(program), Decision::Clean { .. })
}

fn exact(bytes: u64, iterations: u64) -> Rate {
    Rate::new(u128::from(bytes), u128::from(iterations), Certainty::Exact)
}

#[test]
fn a_leak_that_spares_the_last_measured_iteration_is_found() {
    let leak = leak(&keeps(4 * MIB, |at| at != 11));
    assert!(leak.whole && leak.rate.rounded().abs_diff(4 * MIB) < MIB / 20, "{leak:?}");
    // A pattern that repeats every ten iterations has an exact rate.
    let every_ten = keeps(4 * MIB, |at| at % 10 != 1);
    assert_eq!(super::named::leak(&every_ten).rate, exact(9 * 4 * MIB, 10));
}

#[test]
fn ninety_nine_of_a_hundred_are_a_leak() {
    assert!(leak(&keeps(4 * MIB, |at| at % 100 != 99)).whole);
}

#[test]
fn a_leak_that_begins_in_measured_iteration_6_is_exact() {
    let leak = leak(&keeps(4 * MIB, |at| at >= 7));
    assert_eq!((leak.rate, leak.whole), (exact(4 * MIB, 1), true));
    assert_eq!(leak.parts[0].pattern, PartPattern::Exact { period: 1 });
}

#[test]
fn rings_up_to_the_horizon_are_clean_and_longer_ones_are_not() {
    for length in [1, 2, 12, 40, 64, 100, 128, 150, 160] {
        let ring = program((0..1_100).map(|at| (at, at + length, MIB)));
        assert!(is_clean(&ring), "{length}: {:?}", decide(&ring));
    }
    assert_eq!(leak(&program((0..1_100).map(|at| (at, at + 180, MIB)))).rate, exact(MIB, 1));
}

#[test]
fn leaks_up_to_the_quiet_time_are_exact_and_rarer_ones_are_clean() {
    for period in [1, 2, 7, 25, 50, 63, 64] {
        for phase in [0, period / 2, period - 1] {
            let leak = leak(&keeps(MIB, |at| at % period == phase));
            assert_eq!((leak.rate, leak.whole), (exact(MIB, period.into()), true), "{period}");
        }
    }
    for start in [3, 30, 66] {
        assert_eq!(leak(&keeps(MIB, |at| at >= start)).rate, exact(MIB, 1), "{start}");
    }
    assert!(is_clean(&keeps(MIB, |at| at % 66 == 2)));
    assert!(is_clean(&keeps(MIB, |at| at >= 70)));
}

#[test]
fn a_cache_of_16_keys_at_random_is_clean() {
    let mut random = Random(15);
    let mut seen = [false; 16];
    let misses: Vec<u32> = (0..1_100)
        .filter(|_| !std::mem::replace(&mut seen[random.within(0, 15) as usize], true))
        .collect();
    assert!(is_clean(&keeps(MIB, |at| misses.contains(&at))));
}

#[test]
fn two_single_events_are_clean() {
    for (a, b) in [(2, 3), (3, 9), (4, 11), (2, 11), (5, 60)] {
        assert!(is_clean(&keeps(1_000 * MIB, |at| at == a || at == b)), "{a} {b}");
    }
}

#[test]
fn a_vec_that_is_extended_for_ever_grows_by_its_content() {
    // The content grows by 3 MiB per iteration, the capacity doubles, and one block is live.
    let capacity = |at: u32| (at + 1).next_power_of_two();
    let blocks = (0..11).map(|power: u32| {
        let born = (1 << power) / 2;
        (born, 1 << power, 3 * MIB * u64::from(capacity(born)))
    });
    let leak = leak(&program(blocks));
    let part = &leak.parts[0];
    let PartPattern::Amortized { bytes, distance } = part.pattern else { panic!("{leak:?}") };
    assert!(part.replaced && leak.rate.certainty == Certainty::Amortized);
    let (low, high) = (bytes / u64::from(distance + 1), bytes / u64::from(distance - 1));
    assert!((low..=high).contains(&(3 * MIB)), "{leak:?}");
}

#[test]
fn a_leak_with_a_flushed_list_is_found_to_the_byte() {
    for period in 2..=8 {
        for phase in 0..period {
            let list = (0..1_100).map(|at| (at, at + period - (at + phase) % period, MIB));
            for every in [1, 2, 3, 5] {
                let both = program(list.clone()).and(&keeps(MIB, |at| at % every == 0));
                let leak = leak(&both);
                let what = format!("{period} {phase} {every}");
                assert_eq!((leak.rate, leak.whole), (exact(MIB, every.into()), true), "{what}");
            }
        }
    }
}

#[test]
fn a_leak_with_a_lagging_queue_is_found_to_the_byte() {
    let mut random = Random(3);
    for every in 1..=8 {
        for _ in 0..8 {
            let queue = (0..1_100).map(|at| (at, at + random.within(1, 3), MIB));
            let both = program(queue).and(&keeps(MIB, |at| at % every == 1 % every));
            let leak = leak(&both);
            assert_eq!((leak.rate, leak.whole), (exact(MIB, every.into()), true), "{every}");
        }
    }
}

/// A list that gets `blocks` in every `period`-th iteration, and is emptied if it has more than
/// `capacity`. How many of the last blocks are left then is another number each time.
fn emptied_when_full(period: u32, blocks: u32, capacity: usize) -> Vec<(u32, u32, u64)> {
    let (mut live, mut all) = (Vec::new(), Vec::new());
    for at in (0..1_100).filter(|at: &u32| at.is_multiple_of(period)) {
        for _ in 0..blocks {
            live.push(at);
            if live.len() > capacity {
                all.extend(live.drain(..).map(|born| (born, at, MIB)));
            }
        }
    }
    all.extend(live.into_iter().map(|born| (born, u32::MAX, MIB)));
    all
}

const LISTS: [(u32, u32, usize); 4] = [(7, 6, 40), (6, 5, 33), (20, 6, 10), (8, 6, 46)];

#[test]
fn a_list_that_is_emptied_when_full_is_clean() {
    for (period, blocks, capacity) in LISTS {
        let list = program(emptied_when_full(period, blocks, capacity));
        assert!(is_clean(&list), "{capacity}: {:?}", decide(&list));
    }
}

#[test]
fn a_leak_with_a_list_that_is_emptied_when_full_is_found_to_the_byte() {
    // The greatest age of the last list is reached so late that a mean rate is found before.
    for &(period, blocks, capacity) in &LISTS[..3] {
        for every in [1, 3, 7] {
            let list = program(emptied_when_full(period, blocks, capacity));
            let leak = leak(&list.and(&keeps(MIB, |at| at % every == 0)));
            assert_eq!((leak.rate, leak.whole), (exact(MIB, every.into()), true), "{capacity}");
        }
    }
}

/// A block in every second iteration, of which the oldest dies once there are more than `capacity`.
fn ring(random: &mut Random, capacity: impl Fn(u32) -> u32) -> Program {
    let mut held = std::collections::VecDeque::new();
    let mut blocks = Vec::new();
    for at in (0..1_100).step_by(2) {
        held.push_back((at, random.size()));
        while held.len() > capacity(at) as usize {
            blocks.extend(held.pop_front().map(|(born, size)| (born, at, size)));
        }
    }
    blocks.extend(held.into_iter().map(|(born, size)| (born, u32::MAX, size)));
    program(blocks)
}

#[test]
fn a_ring_of_blocks_of_many_sizes_is_clean_unless_it_gets_longer() {
    let mut random = Random(41);
    for capacity in [1, 5, 20, 40] {
        assert!(is_clean(&ring(&mut random, |_| capacity)), "{capacity}");
        let longer = ring(&mut random, |at| capacity + at / 10);
        assert!(!is_clean(&longer), "{capacity}");
    }
}

#[test]
fn a_buffer_that_grows_next_to_a_ring_of_many_sizes_is_not_clean() {
    let mut random = Random(43);
    for capacity in [5, 20, 40] {
        let buffer = (0..1_100u32).map(|at| (at, at + 1, KIB * u64::from(at + 1)));
        let both = ring(&mut random, |_| capacity).and(&program(buffer));
        assert!(!is_clean(&both), "{capacity}");
    }
}

#[test]
fn a_buffer_that_grows_below_a_larger_block_is_a_leak() {
    for larger in [1, 512, 1_024] {
        let buffer = (0..1_100u32).map(|at| (at, at + 1, KIB * u64::from(at + 1)));
        let both = program(buffer.chain([(3, u32::MAX, larger * MIB)]));
        assert_eq!(leak(&both).rate, exact(KIB, 1), "{larger}");
    }
}

#[test]
fn two_sizes_from_one_call_site_are_one_figure() {
    let sizes = [2 * 131_072 + 1_024, 262_144 + 1_024];
    let blocks = (0..1_100).flat_map(|at| sizes.map(|size| (at, u32::MAX, size)));
    let leak = leak(&program(blocks));
    assert_eq!(leak.rate, exact(526_336, 1));
    assert_eq!(Rate::sum(leak.parts.iter().map(|part| &part.rate)), leak.rate);
}

#[test]
fn many_small_blocks_in_every_second_iteration_are_a_leak() {
    let mut history = History::new(2);
    let budget = Budget::default();
    let leak = loop {
        let at = history.iterations();
        let count = if at.is_multiple_of(2) { 100_000 } else { 0 };
        let nodes = Living { site: None, size: 96, born: Some(at), count };
        history.advance([nodes], []);
        if history.iterations() >= 12
            && let Decision::Leak(leak) = step(&history, &budget)
        {
            break leak;
        }
    };
    assert_eq!((leak.rate, leak.whole), (exact(4_800_000, 1), true));
    assert_eq!(leak.parts[0].size, Some(96));
}

#[test]
fn a_run_of_ten_iterations_gives_a_sensible_decision() {
    let budget = Budget::of(12);
    assert_eq!((budget.horizon, budget.quiet), (6, 6));
    let decide = |program: &Program| program.run(&budget).0;
    let Decision::Leak(steady) = decide(&keeps(MIB, |_| true)) else { panic!() };
    assert_eq!(steady.rate, exact(MIB, 1));
    assert!(matches!(decide(&keeps(MIB, |at| at < 2)), Decision::Clean { .. }));
    assert!(matches!(decide(&keeps(MIB, |at| at == 8)), Decision::Open(_)));
    assert!(matches!(decide(&Program::new(12)), Decision::Clean { .. }));
}

#[test]
fn no_input_panics() {
    for most in [0, 1, 2, 3, 12, 402] {
        for warmup in [0, 1, 2, 5_000] {
            let mut history = History::new(warmup);
            for iteration in 0..=12 {
                let _ = step(&history, &Budget::of(most));
                let _ = (history.is_flat(), history.live_bytes());
                let living = |site, size, born, count| Living { site, size, born, count };
                history.add([
                    living(None, u64::MAX, Some(iteration), u64::MAX),
                    living(None, u64::MAX, None, u64::MAX),
                    living(Some(1), 0, Some(u32::MAX), 3),
                    living(Some(2), u64::from(iteration), Some(0), 1),
                    living(Some(3), 1 << 40, Some(iteration / 2), 1 << (5 * iteration)),
                ]);
            }
            let _ = step(&history, &Budget::of(most));
        }
    }
}

#[test]
fn a_flat_program_ends_after_the_quiet_time() {
    let still = program([(0, u32::MAX, MIB), (1, u32::MAX, 64)]);
    assert_eq!(still.run(&Budget::default()), (Decision::Clean { quiet_for: 65 }, 67, 2));
    assert!(still.history(12).is_flat());
    assert!(!keeps(MIB, |at| at == 5).history(12).is_flat());
    assert!(!program([(3, 5, MIB)]).history(12).is_flat());
}

#[test]
fn a_history_is_bounded_and_its_text_is_short() {
    let mut history = History::new(2);
    let sizes = [64, 4_096, MIB, 3 * MIB];
    for at in 0..100_000 {
        let leaked = sizes.map(|size| Living { site: Some(1), size, born: Some(at), count: 1 });
        history.advance(leaked, []);
    }
    // Three series of at least 512 numbers for each size.
    let least = sizes.len() * 3 * 512 * size_of::<u64>();
    assert!((least..1 << 20).contains(&history.footprint()), "{}", history.footprint());
    assert_eq!(history.epoch(), 128);
    let Decision::Leak(leak) = step(&history, &Budget::of(100_000)) else { panic!() };
    assert_eq!(
        (leak.rate, leak.whole, leak.through),
        (exact(sizes.iter().sum(), 1), true, 100_000)
    );
    assert_eq!(leak.parts.len(), 4);
    let text = serde_json::to_string(&history).unwrap();
    assert!(text.len() < 1_000, "{text}");
    assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
}

#[test]
fn kinds_beyond_the_limit_share_one() {
    let mut history = History::new(2);
    for at in 0..6_000 {
        let new = Living { site: None, size: 8 * u64::from(at + 1), born: Some(at), count: 1 };
        let same = Living { site: None, size: 12, born: Some(at), count: 1 };
        history.advance([new, same], []);
    }
    assert!(history.footprint() < 64 << 20, "{}", history.footprint());
    let all: u64 = (1..=6_000).map(|size| 8 * size + 12).sum();
    assert_eq!(history.live_bytes().last(), Some(&all));
    let Decision::Leak(leak) = step(&history, &Budget::of(6_000)) else { panic!() };
    let same = leak.parts.iter().find(|part| part.size == Some(12)).unwrap();
    assert_eq!(same.rate, exact(12, 1));
}

#[test]
fn a_census_and_its_changes_are_the_same() {
    let mut random = Random(5);
    let blocks: Vec<(u32, u32, u64)> = (0..60)
        .map(|_| {
            let born = random.within(0, 30);
            (born, born + random.within(1, 40), 4 * u64::from(random.within(1, 3)))
        })
        .collect();
    let program = program(blocks.clone());
    let mut history = History::new(2);
    for now in 0..40 {
        let live = blocks.iter().filter(|&&(born, died, _)| born <= now && now < died);
        history.add(live.map(|&(born, _, size)| Living {
            site: Some(0),
            size,
            born: Some(born),
            count: 1,
        }));
        assert_eq!(history.live_bytes(), program.history(now + 1).live_bytes());
    }
    assert_eq!(
        serde_json::to_string(&history).unwrap(),
        serde_json::to_string(&program.history(40)).unwrap()
    );
}

/// A soak ends after a time and not at a number of iterations, so that its last look can come at any
/// iteration. 16 blocks of a rare leak are enough at each of them.
#[test]
fn a_soak_finds_a_leak_once_it_has_left_sixteen_blocks() {
    let soak = |every: u32, iterations: u32| {
        let mut history = History::new(2);
        let mut left = Vec::new();
        for at in 0..iterations {
            if at % every == every - 1 {
                left.push(Living { site: None, size: 65_536, born: Some(at), count: 1 });
            }
            let is_new = left.last().filter(|last| last.born == Some(at));
            history.advance(is_new.copied(), []);
        }
        step(&history, &Budget::of(iterations))
    };
    for every in [500, 777, 2_000, 5_000] {
        for blocks in [16, 17, 23, 31, 40] {
            for later in [0, every / 2, every - 1] {
                let found = soak(every, every * blocks + later);
                let rate = match &found {
                    Decision::Leak(leak) => leak.rate.approximate(),
                    // It is reported as a leak with its mean rate.
                    Decision::Open(open) if open.open == Open::GoesOn => open.rate.approximate(),
                    _ => panic!("{every} {blocks}: {found:?}"),
                };
                let rate = rate * f64::from(every) / 65_536.0;
                assert!((0.8..1.2).contains(&rate), "{every} {blocks}: {rate} {found:?}");
            }
        }
    }
    // One block is not a leak.
    let once = soak(50_000, 99_000);
    assert!(!matches!(once, Decision::Leak(_)), "{once:?}");
}
