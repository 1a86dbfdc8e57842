//! Series by hand, each with what it is.

use super::*;

/// A group that keeps what it allocates: live is the running sum.
fn kept(births: &[u64]) -> Group {
    let upto = |i: usize| births[..i].iter().sum();
    Group::of_size(
        100,
        births.to_vec(),
        (0..births.len()).map(|i| upto(i + 1)).collect(),
        (0..births.len()).map(|i| upto(i.saturating_sub(1))).collect(),
    )
}

fn reading(births: &[u64]) -> (Pattern, u64) {
    let reading = kept(births).read();
    (reading.pattern, reading.bytes_per_iteration)
}

#[test]
fn growth_that_goes_on_has_its_exact_rate() {
    assert_eq!(reading(&[4; 10]), (Pattern::Steady, 400));
    assert_eq!(reading(&[0, 0, 6, 0, 0, 6, 0, 0, 6, 0]), (Pattern::Periodic, 200));
    assert_eq!(reading(&[0, 0, 0, 5, 0, 0, 0, 0, 5, 0]), (Pattern::Periodic, 100));
    assert_eq!(reading(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).0, Pattern::Growing);
    assert_eq!(reading(&[1, 0, 2, 1, 0, 1, 2, 1, 0, 1]).0, Pattern::Irregular);
    // The last output is still alive: the rate is the leak's alone.
    assert_eq!(reading(&[4, 4, 4, 4, 4, 4, 4, 4, 4, 5]), (Pattern::Steady, 400));
    assert_eq!(reading(&[4, 4, 4, 4, 4, 4, 4, 4, 6, 5]), (Pattern::Steady, 400));
    // Short runs still tell.
    assert_eq!(reading(&[3, 3, 3]), (Pattern::Steady, 300));
    assert_eq!(reading(&[3, 3]), (Pattern::Steady, 300));
}

#[test]
fn what_stops_or_is_replaced_is_no_growth() {
    assert_eq!(reading(&[4, 4, 4, 0, 0, 0, 0, 0, 0, 0]), (Pattern::Filled, 0));
    assert_eq!(reading(&[4, 4, 4, 4, 4, 4, 0, 0, 0, 0]), (Pattern::Filled, 0));
    assert_eq!(reading(&[0, 0, 0, 0, 0, 0, 0, 0, 4, 4]), (Pattern::LastKept, 0));
    assert_eq!(reading(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 4]), (Pattern::LastKept, 0));
    assert_eq!(reading(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), (Pattern::LastKept, 0));
    assert_eq!(reading(&[0, 0, 0, 0, 9, 0, 0, 0, 0, 0]), (Pattern::Once, 0));
    assert_eq!(reading(&[]), (Pattern::Once, 0));
    // A ring of eight: survivors of eight ages, and never more than eight.
    let ring = Group::of_size(
        100,
        vec![0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
        vec![3, 4, 5, 6, 7, 8, 8, 8, 8, 8],
        vec![1, 2, 3, 4, 5, 6, 6, 6, 6, 6],
    );
    assert_eq!((ring.read().pattern, ring.read().bytes_per_iteration), (Pattern::Replaced, 0));
}

#[test]
fn a_list_that_is_flushed_is_no_growth() {
    // Kept for seven iterations, then cleared: two cycles in the run.
    let flushed = Group::of_size(
        100,
        vec![0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        vec![3, 4, 5, 6, 1, 2, 3, 4, 5, 6],
        vec![1, 2, 3, 4, 0, 0, 1, 2, 3, 4],
    );
    assert_eq!(
        (flushed.read().pattern, flushed.read().bytes_per_iteration),
        (Pattern::Replaced, 0)
    );
}

#[test]
fn a_leak_is_seen_beside_what_comes_and_goes() {
    // One a step is leaked; every other step ends with five more alive.
    let beside_temporaries = Group::of_size(
        100,
        vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        vec![6, 4, 8, 6, 10, 8, 12, 10, 14, 12],
        vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
    assert_eq!(beside_temporaries.read().bytes_per_iteration, 100);
    // One a step is leaked beside a ring of three of the same size.
    let beside_a_ring = Group::of_size(
        100,
        vec![1, 1, 1, 1, 1, 1, 1, 2, 2, 2],
        (0..10).map(|i| 6 + i).collect(),
        (0..10).map(|i| 2 + i).collect(),
    );
    assert_eq!(beside_a_ring.read().bytes_per_iteration, 100);
}

#[test]
fn growth_is_the_sum_over_the_sizes() {
    let groups = [kept(&[1; 10]), kept(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]), kept(&[2; 10])];
    assert_eq!(growth(&groups, &[]), 300);
}

#[test]
fn a_buffer_replaced_by_a_larger_one_grows() {
    let cache: Vec<u64> = (0..10).map(|i| 1_000 + 64 * i).collect();
    let newest = [kept(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])];
    assert_eq!(growth(&newest, &cache), 64);
    // Beside a leak that the survivors prove, the larger evidence holds.
    assert_eq!(growth(&[kept(&[1; 10])], &cache), 100);
}

#[test]
fn a_series_that_only_sometimes_rises_is_no_growth() {
    assert_eq!(rising(&[5, 5, 5, 9, 9, 9, 9, 9]), 0, "ratchet");
    assert_eq!(rising(&[1, 9, 2, 9, 3, 9, 4, 9]), 0, "sawtooth that ends high");
    assert_eq!(rising(&[4, 8, 16, 32, 64]), 0, "a Vec that doubles");
    assert_eq!(rising(&[1, 2, 3]), 0, "too short to tell");
    assert_eq!(rising(&[9, 1, 2, 3, 4]), 0, "falls first");
}

/// A group of one call site of which every block is never freed: `bytes` by
/// the iteration of birth, one block each.
fn one_site(bytes: &[u64]) -> Group {
    let births: Vec<u64> = bytes.iter().map(|&bytes| u64::from(bytes > 0)).collect();
    let counts = Group::of_size(1, births.clone(), sums(&births), lagged(&births));
    Group {
        block: None,
        bytes: bytes.to_vec(),
        live_bytes: sums(bytes),
        old_bytes: lagged(bytes),
        ..counts
    }
}

fn sums(births: &[u64]) -> Vec<u64> {
    (0..births.len()).map(|i| births[..=i].iter().sum()).collect()
}

fn lagged(births: &[u64]) -> Vec<u64> {
    (0..births.len()).map(|i| births[..i.saturating_sub(1)].iter().sum()).collect()
}

/// One buffer of one call site that is as large as `levels` say, made anew
/// whenever that changes.
fn one_buffer(levels: &[u64]) -> Group {
    let n = levels.len();
    let newest = (1..n).rev().find(|&i| levels[i] != levels[i - 1]);
    let births: Vec<u64> = (0..n).map(|i| u64::from(Some(i) == newest)).collect();
    Group {
        block: None,
        bytes: births.iter().map(|&born| born * levels[n - 1]).collect(),
        births,
        live: vec![1; n],
        live_bytes: levels.to_vec(),
        old: vec![0; n],
        old_bytes: vec![0; n],
    }
}

#[test]
fn blocks_of_different_sizes_that_skip_iterations_grow_by_their_mean() {
    let group = one_site(&[10, 0, 30, 50, 0, 20, 0, 70, 90, 40]);
    let reading = group.read();
    assert_eq!(reading.pattern, Pattern::Irregular);
    assert_eq!(reading.bytes_per_iteration, (10 + 30 + 50 + 20 + 70 + 90) / 9);
    // Three of them may be a cache keyed by shape.
    let reading = one_site(&[10, 0, 0, 50, 0, 0, 0, 0, 90, 0]).read();
    assert_eq!((reading.pattern, reading.bytes_per_iteration), (Pattern::Sporadic, 0));
}

#[test]
fn what_is_left_behind_may_itself_grow() {
    let reading = one_site(&[64, 128, 192, 256, 320, 384, 448, 512, 576, 640]).read();
    assert_eq!((reading.pattern, reading.bytes), (Pattern::Growing, 64));
    assert_eq!(reading.bytes_per_iteration, 320);
    let reading = one_site(&[64, 100, 192, 256, 320, 384, 448, 512, 576, 640]).read();
    assert_eq!((reading.pattern, reading.bytes), (Pattern::Growing, 0));
}

#[test]
fn a_group_whose_newest_block_alone_survives_is_told_by_its_level() {
    let pattern = |levels: &[u64]| one_buffer(levels).read().pattern;
    let cache: Vec<u64> = (0..10).map(|i| 1_000 + 64 * i).collect();
    assert_eq!(pattern(&cache), Pattern::Enlarged);
    assert_eq!(pattern(&[10, 10, 20, 20, 30, 30, 40, 40, 50, 50]), Pattern::Enlarged);
    assert_eq!(pattern(&[64, 64, 64, 128, 128, 128, 128, 128, 256, 256]), Pattern::Amortised);
    assert_eq!(pattern(&[30, 30, 50, 50, 50, 50, 70, 70, 70, 70]), Pattern::Ratchet);
    assert_eq!(pattern(&[30, 50, 20, 70, 10, 50, 70, 20, 10, 80]), Pattern::LastKept);
    // Three in order are chance, for outputs of any shape.
    assert_eq!(pattern(&[30, 40, 50, 90]), Pattern::LastKept);
}

#[test]
fn a_cache_that_stopped_is_told_from_the_outputs_beside_it() {
    let group = Group::of_size(
        100,
        vec![1, 1, 1, 0, 0, 0, 0, 0, 0, 1],
        vec![2, 3, 4, 4, 4, 4, 4, 4, 4, 4],
        vec![0, 0, 1, 2, 3, 3, 3, 3, 3, 3],
    );
    let reading = group.read();
    assert_eq!((reading.pattern, reading.bytes, reading.last), (Pattern::Filled, 300, 3));
}

#[test]
fn growth_beside_a_long_ring_has_the_rate_of_the_leak_alone() {
    // A ring of seven, full in the third measured iteration.
    let group = Group::of_size(
        100,
        vec![1, 1, 1, 2, 2, 2, 2, 2, 2, 2],
        vec![10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
        vec![6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    );
    let reading = group.read();
    assert_eq!((reading.pattern, reading.bytes_per_iteration), (Pattern::Steady, 100));
}

#[test]
fn the_rarest_leak_of_four_bytes_is_not_rounded_to_nothing() {
    let rare = Group { block: Some(4), ..one_site(&[0, 0, 0, 0, 4, 0, 0, 0, 0, 4]) };
    assert_eq!(rare.read().bytes_per_iteration, 1);
}

#[test]
fn a_reading_is_one_line_with_its_figures() {
    let cache: Vec<u64> = (0..10).map(|i| 1_000 + 64 * i).collect();
    for (group, words) in [
        (kept(&[4; 10]), "steady, 400 B an iteration"),
        (kept(&[0, 0, 6, 0, 0, 6, 0, 0, 6, 0]), "600 B in every 3rd iteration, 200 B an iteration"),
        (
            one_site(&[64, 128, 192, 256, 320, 384, 448, 512, 576, 640]),
            "quadratic, 64 B more in every iteration than before, 320 B an iteration on average",
        ),
        (
            one_site(&[10, 0, 30, 50, 0, 20, 0, 70, 90, 40]),
            "in no regular order, 30 B an iteration on average",
        ),
        (one_buffer(&cache), "replaced by one larger by 64 B in every iteration"),
        (kept(&[4, 4, 4, 4, 0, 0, 0, 0, 0, 0]), "filled to 1.6 KiB and stopped after iteration 4"),
        (kept(&[0, 0, 0, 0, 0, 0, 0, 0, 4, 4]), "kept from the last iterations only: 800 B"),
        (one_buffer(&[64, 64, 64, 128]), "a Vec-like buffer that doubles, last to 128 B"),
        (one_buffer(&[30, 30, 50, 50]), "grows with the largest input seen, to 50 B"),
        (kept(&[0, 0, 0, 0, 9, 0, 0, 0, 0, 0]), "once, 900 B in iteration 5"),
        (kept(&[0; 4]), "nothing of the iterations survives"),
    ] {
        assert_eq!(group.read().describe(), words);
    }
}
