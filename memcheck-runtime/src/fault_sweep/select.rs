//! Selects the allocations that are refused, if an iteration has more than may be refused.

use std::collections::BTreeSet;

/// The numbers of the selected allocations, from 1 and in order. `count` is the number of all, and
/// `contexts` are the call sites of the first of them. Each call site is selected once, and the
/// rest evenly.
pub(super) fn select(count: u64, contexts: &[u32], most: u64) -> Vec<u64> {
    if count <= most {
        return (1..=count).collect();
    }
    let mut seen = BTreeSet::new();
    let new = |(at, context): (u64, &u32)| seen.insert(*context).then_some(at);
    let first: Vec<u64> = (1..).zip(contexts).filter_map(new).collect();
    let mut selected: BTreeSet<u64> = evenly(&first, most).collect();
    // Also beyond the known call sites, so that the end of a long iteration is swept too.
    let rest: Vec<u64> = (1..=count).filter(|number| !selected.contains(number)).collect();
    selected.extend(evenly(&rest, most - selected.len() as u64).collect::<Vec<_>>());
    selected.into_iter().collect()
}

/// At most this number of elements, at equal distances.
fn evenly(of: &[u64], most: u64) -> impl Iterator<Item = u64> {
    let count = most.min(of.len() as u64) as usize;
    (0..count).map(move |at| of[at * of.len() / count])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_of_a_small_iteration_is_selected() {
        assert_eq!(select(4, &[7, 7, 7, 8], 4), [1, 2, 3, 4]);
        assert_eq!(select(0, &[], 4), [0; 0]);
    }

    #[test]
    fn a_large_iteration_has_each_call_site_once_and_then_even_distances() {
        let mut contexts = [7; 100];
        contexts[41] = 8;
        contexts[99] = 9;
        let selected = select(100, &contexts, 13);
        assert_eq!(selected.len(), 13);
        for first in [1, 42, 100] {
            assert!(selected.contains(&first), "{selected:?}");
        }
        let gaps = selected.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max() <= Some(11), "{selected:?}");
        // More call sites than may be selected.
        let contexts: Vec<u32> = (0..100).collect();
        assert_eq!(select(100, &contexts, 4), [1, 26, 51, 76]);
        // The call sites of later allocations are not known.
        assert_eq!(select(10, &[5, 6], 3), [1, 2, 3]);
    }
}
