//! Tests from histories to figures, groups and patterns.

mod decided;
mod joined;
mod lines;
mod rising;

use super::*;
use crate::growth::lifetimes::{
    Budget, Certainty, Decision, History, Leak, Living, Part, PartPattern, Rate, step,
};

/// Live blocks: call site (0 for none), size, iteration of birth, number.
type Block = (u32, u64, u32, u64);

fn living((site, size, born, count): Block) -> Living {
    Living { site: Some(site).filter(|&site| site > 0), size, born: Some(born), count }
}

/// `live` returns the live blocks at the end of an iteration.
fn play(live: impl Fn(u32) -> Vec<Block>) -> Grown {
    let budget = Budget::of(1_002);
    let mut history = History::new(2);
    let mut further = 12;
    loop {
        for _ in 0..further {
            let now = history.iterations();
            history.add(live(now).into_iter().map(living));
        }
        match step(&history, &budget) {
            Decision::More(more) => further = more,
            decision => return read(&history, &decision, 10),
        }
    }
}

/// The history after `iterations` iterations, of which two are warm-up.
fn after(iterations: u32, live: impl Fn(u32) -> Vec<Block>) -> History {
    let mut history = History::new(2);
    for now in 0..iterations {
        history.add(live(now).into_iter().map(living));
    }
    history
}

fn kept(site: u32, size: u64, (first, period): (u32, u32), now: u32) -> Vec<Block> {
    let births = (first..=now).step_by(period as usize);
    births.map(|born| (site, size, born, 1)).collect()
}

fn ring(site: u32, size: u64, length: u32, now: u32) -> Vec<Block> {
    (now.saturating_sub(length - 1)..=now).map(|born| (site, size, born, 1)).collect()
}

#[test]
fn a_leak_has_its_rate_its_blocks_and_its_pattern() {
    let grown = play(|now| kept(0, 4_096, (0, 1), now));
    assert_eq!(grown.bytes_per_iteration, 4_096);
    assert!(matches!(grown.growth, Growth::Found { whole: true, exact: true, .. }));
    let [group] = grown.by_size.as_slice() else { panic!("{grown:?}") };
    assert_eq!(
        (group.count(), group.bytes(), group.reading.pattern),
        (10, 40_960, Pattern::Steady)
    );
    let grown = play(|now| kept(0, 600, (2, 3), now));
    let reading = grown.by_size[0].reading;
    assert_eq!((reading.pattern, reading.period, reading.bytes), (Pattern::Periodic, 3, 600));
    assert_eq!(reading.bytes_per_iteration, 200);
}

/// A history of 3,000 iterations has one entry for each epoch of four.
#[test]
fn a_long_run_is_read_by_iterations_and_not_by_epochs() {
    let mut history = History::new(2);
    for now in 0..3_000 {
        let came = Living { site: None, size: 600, born: Some(now), count: 1 };
        history.advance([came], []);
    }
    let grown = read(&history, &step(&history, &Budget::of(3_000)), 10);
    let reading = grown.by_size[0].reading;
    assert_eq!((history.epoch(), reading.pattern, reading.period), (4, Pattern::Steady, 1));
    assert_eq!((grown.bytes_per_iteration, reading.bytes), (600, 600));
}

#[test]
fn a_long_run_states_no_step_that_an_epoch_hides() {
    let described = |size: u64, iterations: u128, period: u32| {
        let mut history = History::new(2);
        for now in 0..3_000 {
            let came = Living { site: None, size: 600, born: Some(now), count: 1 };
            history.advance([came], []);
        }
        let part = Part {
            site: None,
            size: Some(size),
            rate: Rate::new(size.into(), iterations, Certainty::Exact),
            pattern: PartPattern::Exact { period },
            replaced: false,
            blocks: 0,
            bytes: 0,
        };
        let leak = Leak { rate: part.rate, whole: true, through: 3_000, parts: vec![part] };
        let grown = read(&history, &Decision::Leak(leak), 10);
        grown.by_size.iter().find(|group| group.reading.grows()).unwrap().reading.describe()
    };
    // Epochs are of four iterations.
    let every_512th =
        "524,288 B (512.0 KiB) in every 512th iteration, 1,024 B (1.00 KiB) per iteration";
    assert_eq!(described(524_288, 512, 512), every_512th);
    assert_eq!(described(600, 4, 4), "600 B in every 4th iteration, 150 B per iteration");
    assert_eq!(described(600, 1, 4), "steady, 600 B per iteration");
}

#[test]
fn a_buffer_of_a_long_run_states_only_a_step_that_is_known() {
    let history = after(3_000, |now| {
        let enlarged = now / 512;
        vec![(1, 524_288 * u64::from(enlarged + 1), enlarged * 512, 1)]
    });
    let described = |period: u32| {
        let part = Part {
            site: Some(1),
            size: None,
            rate: Rate::new(524_288, 512, Certainty::Exact),
            pattern: PartPattern::Exact { period },
            replaced: true,
            blocks: 0,
            bytes: 0,
        };
        let leak = Leak { rate: part.rate, whole: true, through: 3_000, parts: vec![part] };
        read(&history, &Decision::Leak(leak), 10).by_site[&1].reading.describe()
    };
    let rate = "1,024 B (1.00 KiB) per iteration on average";
    let step = "524,288 B (512.0 KiB) more in every 512th iteration";
    assert_eq!(described(512), format!("replaced by larger ones, {step}: {rate}"));
    assert_eq!(described(4), format!("replaced by larger ones now and then, {rate}"));
}

/// A `Vec` that gets 8 B in each iteration and doubles its capacity.
#[test]
fn a_vector_that_doubles_has_the_rate_of_its_content() {
    let grown = play(|now| {
        let capacity = (now + 1).next_power_of_two().max(4);
        let born = if capacity == 4 { 0 } else { capacity / 2 };
        vec![(1, 8 * u64::from(capacity), born, 1)]
    });
    let described = grown.by_site[&1].reading.describe();
    let words =
        "enlarged by a factor whenever it is full: the content grows by about 8 B per iteration";
    assert_eq!(described, words);
}

#[test]
fn call_sites_share_the_figure_to_the_byte() {
    let grown = play(|now| {
        [kept(1, 301, (0, 3), now), kept(2, 301, (1, 3), now), ring(3, 301, 12, now)].concat()
    });
    let shares: Vec<u64> =
        grown.by_site.values().map(|group| group.reading.bytes_per_iteration).collect();
    assert_eq!(shares.iter().sum::<u64>(), grown.bytes_per_iteration);
    assert_eq!((grown.bytes_per_iteration, shares), (201, vec![101, 100, 0]));
    assert_eq!(grown.by_site[&3].reading.pattern, Pattern::Replaced);
    assert!(grown.by_size.is_empty(), "{:?}", grown.by_size);
}

#[test]
fn blocks_that_do_not_grow_have_a_pattern() {
    let at_rest = |live: &dyn Fn(u32) -> Vec<Block>| {
        let grown = play(live);
        assert_eq!(grown.bytes_per_iteration, 0, "{grown:?}");
        assert!(matches!(grown.growth, Growth::Quiet { .. }), "{grown:?}");
        grown.by_size.iter().map(|group| group.reading.pattern).collect::<Vec<_>>()
    };
    assert_eq!(at_rest(&|now| ring(0, 8, 12, now)), [Pattern::Replaced]);
    assert_eq!(at_rest(&|now| ring(0, 8, 2, now)), [Pattern::LastKept]);
    let cache = |now: u32| kept(0, 8, (2, 1), now.min(7));
    assert_eq!(at_rest(&cache), [Pattern::Filled]);
    let once = |now: u32| if now >= 5 { vec![(0, 8, 5, 1)] } else { Vec::new() };
    assert_eq!(at_rest(&once), [Pattern::Once]);
    assert_eq!(at_rest(&|_| Vec::new()), []);
}

#[test]
fn a_reading_is_one_line_with_its_figures() {
    let reading = |pattern, period, bytes, rate, last| Reading {
        pattern,
        bytes_per_iteration: rate,
        period,
        bytes,
        last,
        groups: 1,
    };
    for (reading, words) in [
        (reading(Pattern::Steady, 1, 400, 400, 0), "steady, 400 B per iteration"),
        (
            reading(Pattern::Periodic, 3, 600, 200, 0),
            "600 B in every 3rd iteration, 200 B per iteration",
        ),
        (
            reading(Pattern::Growing, 1, 64, 320, 0),
            "adds 64 B more in each iteration than in the one before, 320 B per iteration on average in the measured iterations",
        ),
        (
            reading(Pattern::Growing, 3, 0, 320, 0),
            "adds more in every 3 iterations than in the 3 before, 320 B per iteration on average in the measured iterations",
        ),
        (reading(Pattern::Irregular, 1, 30, 30, 0), "irregular, 30 B per iteration on average"),
        (
            reading(Pattern::Enlarged, 1, 64, 64, 0),
            "replaced by one larger by 64 B in every iteration",
        ),
        (
            reading(Pattern::Amortized, 1, 128, 3, 0),
            "enlarged by a factor whenever it is full: the content grows by about 3 B per iteration",
        ),
        (
            reading(Pattern::Filled, 1, 1_600, 0, 4),
            "filled to 1.56 KiB and stopped after iteration 4",
        ),
        (reading(Pattern::LastKept, 1, 800, 0, 10), "kept from the last iterations only: 800 B"),
        (reading(Pattern::Ratchet, 1, 50, 0, 3), "grows with the largest input seen, to 50 B"),
        (reading(Pattern::Once, 1, 900, 0, 5), "once, 900 B in iteration 5"),
        (reading(Pattern::Once, 1, 0, 0, 0), "no block of the iterations survives"),
    ] {
        assert_eq!(reading.describe(), words);
    }
}

#[test]
fn a_line_of_several_groups_is_in_the_plural() {
    let reading = |pattern, groups, period| {
        let rate = 64 / period;
        Reading { pattern, bytes_per_iteration: rate, period, bytes: 64, last: 0, groups }
            .describe()
    };
    assert_eq!(
        reading(Pattern::Enlarged, 2, 1),
        "replaced by larger ones, 64 B more in every iteration"
    );
    assert_eq!(
        reading(Pattern::Enlarged, 1, 2),
        "replaced by larger ones, 64 B more in every 2nd iteration: 32 B per iteration on average"
    );
    assert_eq!(reading(Pattern::Ratchet, 2, 1), "grow with the largest input seen, to 64 B");
    let varies = Reading { bytes: 0, bytes_per_iteration: 8, ..Reading::default() };
    let varies = Reading { pattern: Pattern::Rising, period: 1, ..varies };
    assert_eq!(varies.describe(), "rises in every iteration, by at least 8 B");
    let replaced = Reading { pattern: Pattern::Replaced, bytes_per_iteration: 0, ..varies };
    assert_eq!(replaced.describe(), "replaced continuously, never more than before: 0 B");
}

#[test]
fn a_period_is_an_ordinal_number() {
    for (period, ordinal) in [
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (14, "14th"),
        (21, "21st"),
        (22, "22nd"),
        (23, "23rd"),
        (101, "101st"),
        (111, "111th"),
        (112, "112th"),
    ] {
        let reading = Reading { pattern: Pattern::Periodic, period, ..Reading::default() };
        let words = format!("0 B in every {ordinal} iteration, 0 B per iteration");
        assert_eq!(reading.describe(), words);
    }
}

#[test]
fn readings_are_of_one_kind_if_they_differ_in_bytes_only() {
    let reading = Reading {
        pattern: Pattern::Periodic,
        bytes_per_iteration: 32,
        period: 2,
        bytes: 64,
        last: 0,
        groups: 1,
    };
    let is_like = |other: Reading| reading.kind() == other.kind();
    assert!(is_like(Reading { bytes: 128, bytes_per_iteration: 64, groups: 2, ..reading }));
    assert!(!is_like(Reading { pattern: Pattern::Enlarged, ..reading }));
    assert!(!is_like(Reading { period: 3, ..reading }));
    assert!(!is_like(Reading { bytes: 0, ..reading }));
    // Only the description of an event has the iteration of its last occurrence.
    assert!(is_like(Reading { last: 7, ..reading }));
    for event in [Pattern::Filled, Pattern::Once] {
        let at = |last| Reading { pattern: event, last, ..reading }.kind();
        assert!(at(3) == at(3) && at(3) != at(4));
    }
}

#[test]
fn readings_of_one_kind_add_up() {
    let reading = |rate, last| Reading {
        pattern: Pattern::Enlarged,
        bytes_per_iteration: rate,
        period: 2,
        bytes: 2 * rate,
        last,
        groups: 2,
    };
    let both = Reading { bytes: 26, groups: 4, ..reading(13, 7) };
    assert_eq!(reading(10, 7).plus(reading(3, 4)), both);
    assert_eq!(reading(10, 4).plus(reading(3, 7)), both);
}

#[test]
fn a_group_of_several_readings_grows_by_all_of_them() {
    let reading = |pattern, rate| Reading {
        pattern,
        bytes_per_iteration: rate,
        period: 1,
        bytes: rate,
        last: 0,
        groups: 1,
    };
    let steady = reading(Pattern::Steady, 10);
    let joined = steady.merge(reading(Pattern::Steady, 5));
    assert_eq!(
        (joined.pattern, joined.bytes_per_iteration, joined.groups),
        (Pattern::Steady, 15, 1)
    );
    let joined = steady.merge(reading(Pattern::Enlarged, 5));
    assert_eq!((joined.pattern, joined.bytes_per_iteration), (Pattern::Irregular, 15));
    assert_eq!((joined.period, joined.bytes, joined.groups), (1, 15, 1));
    assert_eq!(steady.merge(reading(Pattern::Filled, 0)), steady);
    assert_eq!(reading(Pattern::Filled, 0).merge(steady), steady);
    let every_third = Reading { period: 3, ..reading(Pattern::Periodic, 5) };
    let every_second =
        Reading { period: 2, bytes: 20, groups: 2, ..reading(Pattern::Periodic, 10) };
    let joined = every_third.merge(every_second);
    assert_eq!((joined.pattern, joined.period, joined.bytes), (Pattern::Irregular, 1, 15));
    assert_eq!(joined.groups, 2);
    let growing = reading(Pattern::Growing, 5);
    assert_eq!(growing.merge(growing).bytes, 10);
    let unknown = Reading { bytes: 0, ..growing };
    assert_eq!((growing.merge(unknown).bytes, unknown.merge(growing).bytes), (0, 0));
}

#[test]
fn two_readings_at_rest_merge_to_the_larger_one() {
    let rests = |pattern, bytes, groups| Reading {
        pattern,
        bytes_per_iteration: 0,
        period: 1,
        bytes,
        last: 4,
        groups,
    };
    let (cache, ring) = (rests(Pattern::Filled, 80, 1), rests(Pattern::Replaced, 24, 3));
    let shown = Reading { groups: 3, ..cache };
    assert_eq!((cache.merge(ring), ring.merge(cache)), (shown, shown));
    assert_eq!(cache.merge(cache), rests(Pattern::Filled, 160, 1));
}

fn assert_one_figure(grown: &Grown, what: &str) {
    let sum = |groups: &mut dyn Iterator<Item = &Group>| -> u64 {
        groups.map(|group| group.reading.bytes_per_iteration).sum()
    };
    let shares = sum(&mut grown.by_site.values()) + sum(&mut grown.by_size.iter());
    assert_eq!(grown.bytes_per_iteration, shares, "{what}: {grown:?}");
    let is_found = matches!(grown.growth, Growth::Found { .. });
    assert!(is_found || grown.bytes_per_iteration == 0, "{what}: {grown:?}");
    for group in grown.by_site.values().chain(&grown.by_size) {
        let is_growing = group.reading.bytes_per_iteration > 0;
        assert!(!is_growing || group.count() > 0, "{what}: {group:?}");
        if let Some(size) = group.block {
            assert_eq!(group.bytes(), group.count() * size, "{what}: {group:?}");
        }
        assert!(group.bytes() >= group.count(), "{what}: {group:?}");
    }
}

/// Random programs of all families, alone and in pairs, with and without call sites.
#[test]
fn growth_is_one_figure_for_every_division_by_size_or_site() {
    use crate::growth::lifetimes::programs::{CLEAN, LEAKS, Program, ProgramFamily, Random};
    let mut random = Random(31);
    let budget = Budget::default();
    let families: Vec<&ProgramFamily> = LEAKS.iter().chain(CLEAN).collect();
    for (at, family) in families.iter().enumerate().step_by(5) {
        let other = families[(at + 1) % families.len()];
        let mut program = Program::new(budget.most);
        for (family, site) in [(family, 1), (&other, 1), (family, 2)] {
            let size = random.size();
            program = program.and(&family.program(&mut random, budget.most, site, size));
        }
        let (decision, iterations, _) = program.run(&budget);
        let grown = read(&program.history(iterations), &decision, 10);
        assert_one_figure(&grown, &format!("{} and {}", family.name, other.name));
        let grown = without_sites(&program, &budget);
        assert_one_figure(&grown, &format!("{} and {} by size", family.name, other.name));
    }
}

/// Runs that end early must not report growth without blocks either.
#[test]
fn growth_has_surviving_blocks_whatever_the_number_of_iterations() {
    use crate::growth::lifetimes::programs::{CLEAN, LEAKS, Random};
    let mut random = Random(32);
    for family in LEAKS.iter().chain(CLEAN) {
        for most in [12, 30, 51, 120] {
            let size = random.size();
            let program = family.program(&mut random, most, 1, size);
            let (decision, iterations, _) = program.run(&Budget::of(most));
            let grown = read(&program.history(iterations), &decision, 10);
            assert_one_figure(&grown, &format!("{} to {most}", family.name));
            let grown = without_sites(&program, &Budget::of(most));
            assert_one_figure(&grown, &format!("{} to {most} by size", family.name));
        }
    }
}

/// The state of an optimizer first appears in iteration 40, and the run ends soon after it.
#[test]
fn blocks_that_are_allocated_once_and_late_are_not_growth() {
    use crate::growth::lifetimes::Open;
    let state = |now: u32| if now >= 40 { vec![(1, 65_536, 40, 4)] } else { Vec::new() };
    let history = after(51, state);
    let grown = read(&history, &step(&history, &Budget::of(51)), 10);
    assert_eq!(
        grown.growth,
        Growth::Undecided { open: Open::Rare, bytes: 4 * 65_536, iterations: 51 }
    );
    assert_eq!((grown.bytes_per_iteration, grown.by_site[&1].count()), (0, 4));
    assert!(matches!(play(state).growth, Growth::Quiet { iterations: 65.. }));
}

fn without_sites(program: &crate::growth::lifetimes::programs::Program, budget: &Budget) -> Grown {
    let mut history = History::new(2);
    let mut further = 12;
    loop {
        for _ in 0..further {
            let now = history.iterations();
            let live = program
                .blocks
                .iter()
                .filter(|block| (block.born.unwrap_or(0)..block.died).contains(&now));
            history.add(live.map(|block| Living {
                site: None,
                size: block.size,
                born: block.born,
                count: 1,
            }));
        }
        match step(&history, budget) {
            Decision::More(more) => further = more,
            decision => return read(&history, &decision, 10),
        }
    }
}
