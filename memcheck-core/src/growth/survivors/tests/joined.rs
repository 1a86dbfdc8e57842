//! Call sites with the same name become one group, which must be that of one call site.

use super::*;
use crate::growth::lifetimes::Budget;

/// One of four call sites, as a pool of threads would select it.
fn random(born: u32) -> u32 {
    1 + (born.wrapping_mul(2_654_435_761) >> 16) % 4
}

/// The same program as one call site, and as the sites that `site` selects for each iteration.
/// Blocks begin with iteration `first` of `length` ones.
fn assert_joined_is_one((first, length): (u32, u32), sites: fn(u32) -> u32, what: &str) {
    let grown = |site: fn(u32) -> u32| {
        let live = |now: u32| (first..=now).map(|born| (site(born), 8, born, 1)).collect();
        let history = after(length, live);
        read(&history, &step(&history, &Budget::of(length)), 10)
    };
    let (one, divided) = (grown(|_| 1), grown(sites));
    assert_eq!(
        (one.growth, one.bytes_per_iteration),
        (divided.growth, divided.bytes_per_iteration)
    );
    let [one] = one.by_site.into_values().collect::<Vec<_>>().try_into().expect("one group");
    assert_eq!(one.reading.pattern, Pattern::Steady, "{what}");
    assert!(divided.by_site.len() > 1, "{what}");
    let irregular = |group: &Group| group.reading.pattern == Pattern::Irregular;
    assert!(divided.by_site.values().all(irregular), "{what}: {:?}", divided.by_site);
    let forwards = divided.by_site.clone().into_values().reduce(Group::join).expect("groups");
    let backwards = divided.by_site.into_values().rev().reduce(Group::join).expect("groups");
    for joined in [forwards, backwards] {
        assert_eq!(Group { shared: None, ..joined }, one, "{what}");
    }
}

#[test]
fn threads_that_share_the_work_of_a_line_do_not_change_its_group() {
    assert_joined_is_one((0, 214), random, "from the first iteration on");
    assert_joined_is_one((60, 214), random, "later");
    assert_joined_is_one((240, 2_048), random, "a value stands for four iterations");
    // The other call sites have their first blocks long after the first ten iterations.
    let late = |born| if born > 90 { random(born) } else { 1 };
    assert_joined_is_one((0, 214), late, "all but one are late");
}

#[test]
fn a_group_does_not_have_the_pattern_that_it_only_has_with_others() {
    let live = |now: u32| (0..=now).map(|born| (1 + random(born) % 3, 8, born, 1)).collect();
    let history = after(214, live);
    let grown = read(&history, &step(&history, &Budget::of(214)), 10);
    let mut groups = grown.by_site.into_values();
    let (first, second) = (groups.next().unwrap(), groups.next().unwrap());
    let joined = first.join(second);
    assert_eq!(joined.reading.pattern, Pattern::Irregular);
    assert_eq!(joined.shared.unwrap().pattern, Pattern::Steady);
    assert_eq!(joined.join(groups.next().unwrap()).reading.pattern, Pattern::Steady);
}

#[test]
fn groups_with_different_sizes_have_no_size_together() {
    let history = after(214, |now| [kept(1, 8, (0, 1), now), kept(2, 16, (2, 1), now)].concat());
    let grown = read(&history, &step(&history, &Budget::of(214)), 10);
    let [small, large] = [1, 2].map(|site| grown.by_site[&site].clone());
    assert_eq!((small.block, large.block), (Some(8), Some(16)));
    let joined = small.join(large);
    assert_eq!((joined.block, joined.count(), joined.bytes()), (None, 20, 240));
}

#[test]
fn blocks_after_the_iterations_of_a_group_do_not_count_in_it() {
    let history = after(214, |now| {
        let once = (now >= 112).then_some((2, 4_096, 112, 1));
        [kept(1, 8, (0, 1), now), Vec::from_iter(once)].concat()
    });
    let grown = read(&history, &step(&history, &Budget::of(214)), 10);
    let [each, once] = [1, 2].map(|site| grown.by_site[&site].clone());
    assert_eq!((once.skipped, once.count(), once.reading.grows()), (Some(110), 1, false));
    for joined in [each.clone().join(once.clone()), once.join(each.clone())] {
        assert_eq!(joined, each);
    }
}

#[test]
fn older_blocks_are_live_in_the_iterations_before_a_group() {
    // The second call site has a block of the warm-up, and keeps another in iteration 20.
    let history = after(214, |now| {
        let later = (now >= 20).then_some((2, 16, 20, 1));
        [kept(1, 8, (0, 1), now), vec![(2, 16, 0, 1)], Vec::from_iter(later)].concat()
    });
    let grown = read(&history, &step(&history, &Budget::of(214)), 10);
    let [each, later] = [1, 2].map(|site| grown.by_site[&site].clone());
    assert_eq!((later.skipped, later.live[0]), (Some(18), 2));
    let joined = each.clone().join(later);
    assert_eq!((joined.births, joined.block), (each.births, None));
    let with_one_more: Vec<u64> = each.live_bytes.iter().map(|live| live + 16).collect();
    assert_eq!(joined.live_bytes, with_one_more);
}

#[test]
fn jobs_of_a_pool_are_steady_whichever_threads_run_them() {
    const JOBS: u32 = 4;
    let mut state = 1_u32;
    let mut below = move |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % limit
    };
    let mut with_own_part = 0;
    for program in 0..60 {
        // Some threads nearly always run the same job, and the judge finds that they are exact.
        let (percent, threads) = ([0, 50, 99][program % 3], 2 + below(6));
        let mut thread = |job| match below(100) < percent {
            true => 2 + job % threads,
            false => 2 + below(threads),
        };
        let mut threads: Vec<[u32; JOBS as usize]> =
            (0..167).map(|_| std::array::from_fn(|job| thread(job as u32))).collect();
        // A thread that runs its first job in the last iteration has no rate yet.
        threads[166][0] = 1;
        let history = after(167, |now| {
            let born = |born: u32| threads[born as usize].map(|site| (site, 8, born, 1));
            (0..=now).flat_map(born).collect()
        });
        let decision = step(&history, &Budget::of(167));
        let Decision::Leak(leak) = &decision else { panic!("{decision:?}") };
        with_own_part += usize::from(leak.parts.iter().any(|part| part.site.is_some()));
        let grown = read(&history, &decision, 10);
        let joined = grown.by_site.into_values().reduce(Group::join).expect("groups");
        let Reading { pattern, bytes_per_iteration, .. } = joined.reading;
        assert_eq!((pattern, bytes_per_iteration), (Pattern::Steady, 32), "{program}");
    }
    assert!(with_own_part > 3, "{with_own_part} programs");
}
