//! Tests from written-out decisions: the shares of the figure, and the groups that are listed.

use super::*;
use crate::growth::lifetimes::{
    Certainty, Leak, Open, Part, PartPattern as Found, Rate, Undecided,
};

fn rate(bytes: u128, iterations: u128) -> Rate {
    Rate::new(bytes, iterations, Certainty::Exact)
}

fn part(size: Option<u64>, bytes: u128, pattern: Found) -> Part {
    Part { site: None, size, rate: rate(bytes, 1), pattern, replaced: false, blocks: 0, bytes: 0 }
}

fn leak(parts: Vec<Part>) -> Decision {
    let rates: Vec<_> = parts.iter().map(|part| part.rate).collect();
    Decision::Leak(Leak { rate: Rate::sum(&rates), whole: true, through: 12, parts })
}

const STEADY: Found = Found::Exact { period: 1 };

fn open(open: Open) -> Decision {
    let rate = Rate::new(80, 10, Certainty::Mean);
    Decision::Open(Undecided { open, through: 12, blocks: 10, bytes: 80, rate })
}

fn sizes(grown: &Grown) -> Vec<(Option<u64>, u64)> {
    let size_and_rate = |group: &Group| (group.block, group.reading.bytes_per_iteration);
    grown.by_size.iter().map(size_and_rate).collect()
}

fn sites(grown: &Grown) -> Vec<(u32, u64)> {
    let site_and_rate = |(&site, group): (&u32, &Group)| (site, group.reading.bytes_per_iteration);
    grown.by_site.iter().map(site_and_rate).collect()
}

#[test]
fn each_size_has_the_rate_of_its_own_part() {
    let history = after(12, |now| [kept(0, 8, (0, 1), now), kept(0, 24, (0, 1), now)].concat());
    let parts = vec![part(Some(24), 24, STEADY), part(Some(8), 8, STEADY)];
    let grown = read(&history, &leak(parts), 10);
    assert_eq!(
        (grown.bytes_per_iteration, sizes(&grown)),
        (32, vec![(Some(8), 8), (Some(24), 24)])
    );
    let grown = read(&history, &leak(vec![part(None, 32, STEADY)]), 10);
    assert_eq!(sizes(&grown), [(Some(8), 0), (Some(24), 0), (None, 32)]);
    let all = &grown.by_size[2];
    assert_eq!((all.count(), all.bytes(), all.live.last()), (20, 320, Some(&24)));
}

#[test]
fn a_part_without_a_call_site_is_shared_by_the_bytes_that_each_site_has_left() {
    let history = after(12, |now| {
        let left = [kept(1, 8, (0, 1), now), kept(1, 8, (0, 1), now), kept(1, 8, (0, 1), now)];
        [left.concat(), kept(2, 8, (0, 1), now), kept(3, 16, (0, 1), now)].concat()
    });
    let grown = read(&history, &leak(vec![part(Some(8), 32, STEADY)]), 10);
    assert_eq!((grown.by_size.len(), sites(&grown)), (0, vec![(1, 24), (2, 8), (3, 0)]));
    // A call site among several has no rhythm.
    assert_eq!(grown.by_site[&1].reading.pattern, Pattern::Irregular);
    // A part of all sizes is split among the sites that have no part yet.
    let own = Part { site: Some(1), ..part(Some(8), 24, STEADY) };
    let grown = read(&history, &leak(vec![own.clone(), part(None, 24, STEADY)]), 10);
    assert_eq!(sites(&grown), [(1, 24), (2, 8), (3, 16)]);
    let grown = read(&history, &leak(vec![part(Some(16), 16, STEADY)]), 10);
    assert_eq!(sites(&grown), [(1, 0), (2, 0), (3, 16)]);
    assert_eq!(grown.by_site[&3].reading.pattern, Pattern::Steady);
    let grown = read(&history, &leak(vec![part(Some(4), 4, STEADY)]), 10);
    assert_eq!((sizes(&grown), grown.bytes_per_iteration), (vec![(Some(4), 4)], 4));
}

#[test]
fn blocks_that_may_still_die_have_no_share() {
    // Blocks of site 2 die at age 3, and that of site 3 is of the last iteration: no shares.
    let history = after(12, |now| {
        [kept(1, 8, (0, 1), now), ring(2, 8, 3, now), kept(3, 8, (11, 1), now)].concat()
    });
    let grown = read(&history, &leak(vec![part(Some(8), 8, STEADY)]), 10);
    assert_eq!(sites(&grown), [(1, 8), (2, 0), (3, 0)]);
    assert_eq!(grown.by_site[&1].reading.pattern, Pattern::Steady);
    let grown = read(&history, &open(Open::GoesOn), 10);
    assert_eq!(sites(&grown), [(1, 8), (2, 0), (3, 0)]);
}

#[test]
fn a_call_site_with_live_blocks_is_listed() {
    let set_up = |site| Living { site: Some(site), size: 8, born: None, count: 1 };
    let mut history = History::new(2);
    for now in 0..12 {
        let leak = kept(2, 8, (0, 1), now).into_iter().map(living);
        let gone = (now < 5).then(|| set_up(3));
        history.add(leak.chain([set_up(1)]).chain(gone));
    }
    let part = Part { site: Some(2), ..part(Some(8), 8, STEADY) };
    let grown = read(&history, &leak(vec![part]), 10);
    assert_eq!(sites(&grown), [(1, 0), (2, 8)]);
    assert_eq!((grown.by_site[&1].count(), grown.by_site[&1].live[9]), (0, 1));
}

#[test]
fn sizes_of_the_set_up_are_not_listed() {
    let set_up = Living { site: None, size: 8, born: None, count: 1 };
    let mut history = History::new(2);
    for _ in 0..12 {
        history.add([set_up]);
    }
    assert_eq!(read(&history, &Decision::Clean { quiet_for: 10 }, 10).by_size, []);
}

#[test]
fn growth_that_went_on_to_the_end_has_the_mean_rate_of_what_is_left() {
    let without_sites = after(12, |now| kept(0, 8, (0, 2), now));
    let grown = read(&without_sites, &open(Open::GoesOn), 10);
    assert_eq!((grown.bytes_per_iteration, sizes(&grown)), (4, vec![(Some(8), 4)]));
    assert_eq!(grown.growth, Growth::Found { whole: false, exact: false, iterations: 12 });
    assert_eq!(grown.by_size[0].reading.pattern, Pattern::Irregular);
    let with_sites = after(12, |now| [kept(1, 8, (0, 2), now), kept(2, 8, (0, 1), now)].concat());
    let grown = read(&with_sites, &open(Open::GoesOn), 10);
    assert_eq!((sites(&grown), grown.by_size.len()), (vec![(1, 4), (2, 8)], 0));
    // If all live blocks may still die, the rate of the decision is used.
    let without_sites = after(12, |now| ring(0, 8, 5, now));
    let grown = read(&without_sites, &open(Open::GoesOn), 10);
    assert_eq!(grown.bytes_per_iteration, 8);
    let with_sites = after(12, |now| ring(3, 8, 5, now));
    let grown = read(&with_sites, &open(Open::GoesOn), 10);
    assert_eq!((sites(&grown), grown.by_size.len()), (vec![(3, 8)], 0));
}

#[test]
fn growth_that_slowed_or_moved_has_no_rate() {
    let history = after(12, |now| kept(0, 8, (0, 1), now));
    for why in [Open::Slows, Open::Moves] {
        let grown = read(&history, &open(why), 10);
        assert_eq!(grown.growth, Growth::Undecided { open: why, bytes: 80, iterations: 12 });
        assert_eq!((grown.bytes_per_iteration, sizes(&grown)), (0, vec![(Some(8), 0)]));
    }
}

#[test]
fn a_figure_is_exact_if_the_decision_is_exact() {
    let history = after(12, |now| kept(0, 8, (0, 1), now));
    let mut mean = part(Some(8), 8, Found::Mean);
    mean.rate.certainty = Certainty::Mean;
    for (part, exact) in [(mean, false), (part(Some(8), 8, STEADY), true)] {
        let growth = read(&history, &leak(vec![part]), 10).growth;
        assert_eq!(growth, Growth::Found { whole: true, exact, iterations: 12 });
    }
    let growth = read(&history, &Decision::Clean { quiet_for: 10 }, 10).growth;
    assert_eq!(growth, Growth::Quiet { iterations: 10 });
    assert_eq!(read(&history, &Decision::More(5), 10).growth, Growth::Unknown);
}

#[test]
fn too_few_iterations_leave_growth_undecided() {
    let history = after(12, |now| [kept(1, 8, (0, 1), now), kept(2, 24, (0, 1), now)].concat());
    let parts = [(1, 8), (2, 24)];
    let parts = parts.map(|(site, size)| Part {
        site: Some(site),
        ..part(Some(size), u128::from(size), STEADY)
    });
    let grown = read(&history, &leak(parts.to_vec()), 10).undecided(12);
    let growth = Growth::Undecided { open: Open::GoesOn, bytes: 320, iterations: 12 };
    assert_eq!((grown.growth, grown.bytes_per_iteration), (growth, 0));
    assert_eq!(sites(&grown), [(1, 0), (2, 0)]);
    let clean = read(&history, &Decision::Clean { quiet_for: 10 }, 10);
    assert_eq!(clean.clone().undecided(12), clean);
}

#[test]
fn a_call_site_with_a_part_of_its_own_has_no_share_of_the_rest() {
    // Two call sites keep a block in each iteration; two others take turns.
    let history = after(12, |now| {
        let turns = [kept(3, 8, (0, 2), now), kept(4, 8, (1, 2), now)];
        [kept(1, 8, (0, 1), now), kept(2, 8, (0, 1), now), turns.concat()].concat()
    });
    let own = |site| Part { site: Some(site), blocks: 10, bytes: 80, ..part(Some(8), 8, STEADY) };
    let parts = vec![own(1), own(2), part(Some(8), 8, STEADY)];
    let grown = read(&history, &leak(parts), 10);
    assert_eq!(sites(&grown), [(1, 8), (2, 8), (3, 4), (4, 4)]);
}

#[test]
fn a_group_shows_its_first_iterations_or_those_from_its_first_birth_on() {
    let numbers = |first: u32| {
        let history = after(32, |now| kept(0, 8, (first, 1), now));
        let grown = read(&history, &leak(vec![part(Some(8), 8, STEADY)]), 10);
        let group = grown.by_size[0].clone();
        assert_eq!((group.iterations(), group.epoch), (10, None));
        (group.births, group.bytes[9], group.live, group.live_bytes[9], group.skipped)
    };
    let live = (3..=12).collect();
    assert_eq!(numbers(0), (vec![1; 10], 8, live, 12 * 8, None));
    let live: Vec<u64> = (1..=10).collect();
    assert_eq!(numbers(12), (vec![1; 10], 8, live.clone(), 10 * 8, Some(10)));
    assert_eq!(numbers(22), (vec![1; 10], 8, live, 10 * 8, Some(20)));
    // Less than ten iterations follow the first birth.
    let late = [vec![0; 6], vec![1; 4]].concat();
    assert_eq!(numbers(28), (late, 8, vec![0, 0, 0, 0, 0, 0, 1, 2, 3, 4], 4 * 8, Some(20)));
    // Of the first ten measured iterations, only the last has surviving births.
    let births = [vec![0; 9], vec![1]].concat();
    assert_eq!(numbers(11), (births.clone(), 8, births, 8, None));
}

#[test]
fn the_values_of_a_long_run_stand_for_several_iterations() {
    // One block in each of 2,048 iterations, of which 2 are the warm-up, in epochs of 4.
    let grown = read(
        &after(2_048, |now| kept(0, 8, (0, 1), now)),
        &leak(vec![part(Some(8), 8, STEADY)]),
        2_046,
    );
    let group = &grown.by_size[0];
    assert_eq!((group.skipped, group.epoch, group.iterations()), (Some(2), Some(4), 2_044));
    assert_eq!((group.count(), group.births[0], group.births.len()), (2_044, 4, 511));
    // An event is stated by the end of its epoch.
    let once = after(2_048, |now| kept(0, 8, (101, 10_000), now));
    let grown = read(&once, &Decision::Clean { quiet_for: 1_900 }, 2_046);
    assert_eq!(
        (grown.by_size[0].reading.pattern, grown.by_size[0].reading.last),
        (Pattern::Once, 102)
    );
}

#[test]
fn each_pattern_of_the_judge_has_its_reading() {
    let replaced = |now: u32| vec![(0, 100 + 8 * u64::from(now), now, 1)];
    let read = |live: &dyn Fn(u32) -> Vec<Block>, pattern, replaced| {
        let part = Part { replaced, rate: rate(8, 3), ..part(None, 0, pattern) };
        let grown = read(&after(12, live), &leak(vec![part]), 10);
        let reading = grown.by_size.iter().find(|group| group.reading.grows()).unwrap().reading;
        (reading.pattern, reading.period, reading.bytes, reading.last, reading.groups)
    };
    let counted = Found::Counted { period: 3, blocks: 2 };
    let amortized = Found::Amortized { bytes: 64, distance: 9 };
    for (pattern, is_replaced, reading) in [
        (Found::Exact { period: 3 }, false, (Pattern::Periodic, 3, 8, 0, 1)),
        (Found::Exact { period: 1 }, false, (Pattern::Steady, 1, 2, 0, 1)),
        (Found::Exact { period: 6 }, true, (Pattern::Enlarged, 6, 16, 0, 1)),
        (counted, false, (Pattern::Irregular, 1, 3, 0, 1)),
        (counted, true, (Pattern::Enlarged, 1, 0, 0, 1)),
        (Found::Mean, false, (Pattern::Irregular, 1, 3, 0, 1)),
        (Found::Mean, true, (Pattern::Enlarged, 1, 0, 0, 1)),
        (Found::Growing { period: 2, more: 5 }, false, (Pattern::Growing, 2, 5, 0, 1)),
        (amortized, false, (Pattern::Amortized, 1, 64, 0, 1)),
    ] {
        assert_eq!(read(&replaced, pattern, is_replaced), reading, "{pattern:?}");
    }
    // If blocks of half of the iterations stay, they are not replaced by larger ones.
    let every = |period: u32| {
        move |now: u32| {
            let mut kept = kept(0, 8, (0, period), now);
            kept.iter_mut().for_each(|block| block.1 += 8 * u64::from(block.2));
            kept
        }
    };
    assert_eq!(read(&every(2), Found::Mean, true).0, Pattern::Irregular);
    assert_eq!(read(&every(3), Found::Mean, true).0, Pattern::Enlarged);
    // Blocks of one size are not either.
    let alike = |now: u32| kept(0, 8, (0, 3), now);
    assert_eq!(read(&alike, Found::Mean, true).0, Pattern::Irregular);
    let from_two = |now: u32| {
        let mut kept = kept(0, 8, (0, 3), now);
        kept[0].3 = 2;
        kept
    };
    assert_eq!(read(&from_two, Found::Mean, true).0, Pattern::Irregular);
    let late = |now: u32| if now < 5 { Vec::new() } else { replaced(now) };
    assert_eq!(read(&late, Found::Mean, true).0, Pattern::Enlarged);
}

#[test]
fn a_group_at_rest_states_when_it_last_changed_and_what_it_holds() {
    let read = |live: &dyn Fn(u32) -> Vec<Block>| {
        let grown = read(&after(12, live), &Decision::Clean { quiet_for: 10 }, 10);
        let [group] = grown.by_size.as_slice() else { panic!("{grown:?}") };
        let reading = group.reading;
        (reading.pattern, reading.bytes, reading.last)
    };
    // The measured iterations are 2 to 11. The reading counts them from 1.
    assert_eq!(read(&|now| kept(0, 8, (2, 1), now.min(7))), (Pattern::Filled, 48, 6));
    assert_eq!(read(&|now| kept(0, 8, (5, 1), now.min(5))), (Pattern::Once, 8, 4));
    assert_eq!(read(&|now| ring(0, 8, 5, now)), (Pattern::Replaced, 40, 10));
    assert_eq!(read(&|now| ring(0, 8, 3, now)), (Pattern::Replaced, 24, 10));
    assert_eq!(read(&|now| ring(0, 8, 2, now)), (Pattern::LastKept, 16, 10));
    assert_eq!(read(&|now| ring(0, 8, 1, now)), (Pattern::LastKept, 8, 10));
    assert_eq!(read(&|now| kept(0, 8, (11, 1), now)), (Pattern::LastKept, 8, 10));
    // A block that is left of an early iteration is an event, even if other blocks are replaced.
    let early = |now: u32| [ring(0, 8, 2, now), kept(0, 8, (3, 1), now.min(3))].concat();
    assert_eq!(read(&early), (Pattern::Once, 24, 2));
    // A block that is not older than those that died can still die.
    let and_late = |now: u32| [early(now), kept(0, 8, (9, 1), now.min(9))].concat();
    assert_eq!(read(&and_late), (Pattern::Once, 32, 2));
}

#[test]
fn a_buffer_of_a_call_site_that_is_only_sometimes_replaced_holds_the_largest_input() {
    let buffer = |now: u32| if now < 6 { vec![(1, 8, 0, 1)] } else { vec![(1, 64, 6, 1)] };
    let read = |live: &dyn Fn(u32) -> Vec<Block>| {
        let grown = read(&after(12, live), &Decision::Clean { quiet_for: 10 }, 10);
        let reading = grown.by_site[&1].reading;
        (reading.pattern, reading.bytes, reading.last)
    };
    assert_eq!(read(&buffer), (Pattern::Ratchet, 64, 5));
    // The block of the last input, which a smaller one replaces too.
    let last = |now: u32| vec![(1, [64, 8, 32, 16][now as usize % 4], now, 1)];
    assert_eq!(read(&last), (Pattern::LastKept, 16, 10));
    // Several live blocks at a time are a cache.
    let two = |now: u32| [buffer(now), kept(1, 16, (3, 1), now.min(4))].concat();
    assert_eq!(read(&two).0, Pattern::Filled);
    assert_eq!(read(&|now| kept(1, 8, (6, 1), now.min(6))).0, Pattern::Once);
}

#[test]
fn a_figure_without_blocks_grows_at_the_rate_of_its_decision() {
    let of = |decision| {
        let grown = read_level(&decision);
        assert!(grown.by_size.is_empty() && grown.by_site.is_empty());
        (grown.bytes_per_iteration, grown.growth)
    };
    let found = |whole, iterations| Growth::Found { whole, exact: whole, iterations };
    assert_eq!(of(leak(vec![part(None, 24, STEADY)])), (24, found(true, 12)));
    assert_eq!(of(open(Open::GoesOn)), (8, found(false, 12)));
    let undecided = Growth::Undecided { open: Open::Slows, bytes: 80, iterations: 12 };
    assert_eq!(of(open(Open::Slows)), (0, undecided));
    assert_eq!(of(Decision::Clean { quiet_for: 9 }), (0, Growth::Quiet { iterations: 9 }));
}

/// A history of 3,000 iterations has one entry for each epoch of four.
#[test]
fn growth_that_goes_on_through_a_long_run_has_a_rate_by_iterations() {
    let set_up = Living { site: Some(2), size: 8, born: None, count: 1 };
    let mut history = History::new(2);
    for now in 0..3_000 {
        let came = Living { site: Some(1), size: 600, born: Some(now), count: 1 };
        history.advance([Some(came), (now == 0).then_some(set_up)].into_iter().flatten(), []);
    }
    let grown = read(&history, &open(Open::GoesOn), 10);
    assert_eq!((history.epoch(), sites(&grown)), (4, vec![(1, 600), (2, 0)]));
    assert_eq!(grown.by_site[&2].reading.last, 0, "nothing changed after the set-up");
}
