//! The programs that a seed draws.

use std::collections::BTreeSet;

use memcheck_tests::scenarios::clean::{
    Leak, Random, describe, iterations, pattern_names, planted,
};

#[test]
fn a_seed_always_draws_the_same_program() {
    let patterns = "queue, list that is truncated, double buffer, varying shapes, \
                    cache that fills";
    assert_eq!(describe(7).join(", "), patterns);
    assert_eq!(planted(7), Leak { floats: 4096, every: 2 });
    assert_eq!(iterations(7), 12);
    assert_eq!(iterations(0), 24, "the memory test `clean_program` has the same number");
}

#[test]
fn two_hundred_seeds_draw_every_pattern_and_every_length() {
    let mut names: Vec<_> = (0..200).flat_map(describe).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), pattern_names().count());
    let lengths: BTreeSet<_> = (0..200).map(iterations).collect();
    assert_eq!((lengths.first(), lengths.last(), lengths.len()), (Some(&10), Some(&30), 21));
}

#[test]
fn a_leak_is_large_enough_for_the_host_and_has_a_whole_rate() {
    for leak in (0..200).map(planted) {
        assert!(leak.floats >= 256 && leak.floats * 4 % leak.every == 0, "{leak:?}");
    }
    assert_eq!(Leak { floats: 257, every: 4 }.bytes(), 257);
}

#[test]
fn the_generator_is_splitmix() {
    let mut random = Random(0);
    assert_eq!(random.next_u64(), 0xe220_a839_7b1d_cdaf);
    assert_eq!(random.next_u64(), 0x6e78_9e6a_a1b9_65f4);
}
