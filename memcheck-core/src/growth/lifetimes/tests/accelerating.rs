//! Blocks that are larger in each iteration, next to the lists that keep them.

use super::super::{Budget, Certainty, Decision, History, Living, PartPattern, Rate, step};

/// In each iteration the program keeps `count` blocks, each `more` bytes larger than those before.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    count: u64,
    first: u64,
    more: u64,
}

/// A list to which each iteration adds an element for each block, or so many times as many.
#[derive(Debug, Clone, Copy)]
struct List {
    capacity: u64,
    /// A full list has so many fourths of its capacity next.
    fourths: u64,
    /// Bytes of an element.
    element: u64,
    times: u64,
}

#[derive(Debug, Clone, Copy)]
enum Sites {
    Unknown,
    Same,
    Apart,
}

impl Sites {
    fn numbers(self) -> [Option<u32>; 2] {
        match self {
            Self::Unknown => [None, None],
            Self::Same => [Some(1), Some(1)],
            Self::Apart => [Some(1), Some(2)],
        }
    }
}

/// The buffers that a list allocates as it grows, by the number of elements that need them.
fn buffer(list: &List, length: u64) -> u64 {
    let mut capacity = list.capacity;
    while capacity < length {
        capacity = capacity * list.fourths / 4;
    }
    list.element * capacity
}

fn decide(blocks: Blocks, lists: &[List], warmup: u32, sites: Sites, budget: &Budget) -> Decision {
    let [site, of_list] = sites.numbers();
    let mut history = History::new(warmup);
    let mut buffers: Vec<Option<Living>> = vec![None; lists.len()];
    let mut further = warmup + 10;
    loop {
        for _ in 0..further {
            let at = history.iterations();
            let size = blocks.first + blocks.more * u64::from(at);
            let mut came = vec![Living { site, size, born: Some(at), count: blocks.count }];
            let mut gone = Vec::new();
            let added = blocks.count * u64::from(at + 1);
            for (list, old) in lists.iter().zip(&mut buffers) {
                let size = buffer(list, list.times * added);
                if old.is_none_or(|old| old.size < size) {
                    let new = Living { site: of_list, size, born: Some(at), count: 1 };
                    came.push(new);
                    gone.extend(old.replace(new));
                }
            }
            history.advance(came, gone);
        }
        match step(&history, budget) {
            Decision::More(more) => further = more,
            decision => return decision,
        }
    }
}

/// A list of blocks, a list of `floats` for each, both, two of the same, by 2 and by 1.5, and three.
fn list_sets() -> [Vec<List>; 6] {
    let list = |capacity, fourths, element| List { capacity, fourths, element, times: 1 };
    let floats = |times| List { capacity: 16, fourths: 8, element: 4, times };
    [
        vec![list(4, 8, 8)],
        vec![floats(32)],
        vec![list(8, 8, 24), floats(32)],
        vec![list(4, 8, 8), list(4, 8, 8)],
        vec![list(16, 8, 8), list(4, 6, 8)],
        vec![list(4, 8, 8), list(4, 8, 16), list(4, 8, 24)],
    ]
}

#[test]
fn blocks_that_rise_evenly_have_their_exact_rate_next_to_any_list() {
    let budget = Budget::default();
    for sites in [Sites::Unknown, Sites::Same, Sites::Apart] {
        for (number, lists) in list_sets().iter().enumerate() {
            for (count, more) in [(1, 64), (2, 1_024), (3, 128), (4, 4_096), (1, 1_024)] {
                let warmup = (number as u32 + count as u32) % 6;
                let blocks = Blocks { count, first: [more, 24, more / 2][number % 3], more };
                let decision = decide(blocks, lists, warmup, sites, &budget);
                let size = |at: u32| blocks.first + more * u64::from(at);
                let added: u64 = (warmup..warmup + 10).map(|at| count * size(at)).sum();
                let rate = Rate::new(added.into(), 10, Certainty::Growing);
                let pattern = PartPattern::Growing { period: 1, more: count * more };
                let Decision::Leak(leak) = &decision else { panic!("{decision:?}") };
                let is_part = leak
                    .parts
                    .iter()
                    .any(|part| (part.rate, part.pattern, part.replaced) == (rate, pattern, false));
                assert!(is_part, "{sites:?} {blocks:?} {lists:?} {warmup}: {decision:?}");
                if lists.len() == 1 {
                    assert_eq!((leak.rate, leak.whole), (rate, true), "the list is left out");
                    assert!(leak.through < 300, "{} iterations", leak.through);
                }
            }
        }
    }
}
