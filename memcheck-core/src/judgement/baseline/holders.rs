//! The holders of the memory at the peak, as a baseline keeps them.

mod pairing;

use std::collections::BTreeMap;

use super::super::yaml;
use super::SpaceEntry;
use crate::judgement::blame;
use crate::judgement::finding::GrownHolder;
use crate::measurement::record::Record;
use crate::space::Space;
use pairing::{Labels, Pair, pairs};

/// For each space, so that even a large snapshot has only some kilobytes.
const KEPT_HOLDERS: usize = 12;

/// The largest holders by label without file and line, in bytes; printed and never judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders(pub BTreeMap<Space, BTreeMap<String, u64>>);

impl Holders {
    /// The largest holders in a record that was made with attribution.
    pub fn of(record: &Record) -> Self {
        let Some(attribution) = &record.attribution else { return Self::default() };
        let largest = |space: &Space| {
            let mut labels: Vec<(String, u64)> =
                blame::labels(attribution, *space).into_iter().collect();
            labels.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
            labels.truncate(KEPT_HOLDERS);
            (*space, labels.into_iter().collect())
        };
        let judged = record.judged.iter().filter(|space| !record.has_own_limits(**space));
        Self(judged.map(largest).collect())
    }

    /// The holders in the body of a snapshot; empty if it has none or cannot be parsed.
    pub fn from_yaml(text: &str) -> Self {
        let body: BTreeMap<Space, SpaceEntry> = yaml::read(text).unwrap_or_default();
        Self(body.into_iter().map(|(space, entry)| (space, entry.peak_holders)).collect())
    }

    /// The holders with more bytes than in `then`, the largest difference first. One that is
    /// missing in `then` is left out if `then` may have dropped it for being too small.
    pub fn grown(&self, then: &Self, space: Space) -> Vec<GrownHolder> {
        let none = BTreeMap::new();
        let of = |holders: &'_ Self| holders.0.get(&space).unwrap_or(&none).clone();
        compare(&of(then), &of(self)).grown
    }

    /// The holders at the peak of a record with attribution that hold more of `space` than in this
    /// baseline, and those that hold less, the largest difference first.
    pub fn changes(&self, record: &Record, space: Space) -> HolderChanges {
        let (Some(attribution), Some(then)) = (&record.attribution, self.0.get(&space)) else {
            return HolderChanges::default();
        };
        compare(then, &blame::labels(attribution, space))
    }
}

/// The holders that differ between two peaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderChanges {
    /// Those that hold more.
    pub grown: Vec<GrownHolder>,
    /// Those that hold less or are gone.
    pub shrunk: Vec<GrownHolder>,
}

fn compare(then: &Labels, now: &Labels) -> HolderChanges {
    if then.is_empty() {
        return HolderChanges::default();
    }
    // A full list may have dropped holders up to the size of its smallest one.
    let is_full = then.len() >= KEPT_HOLDERS;
    let left_out = then.values().min().copied().filter(|_| is_full).unwrap_or(0);
    let mut changes = HolderChanges::default();
    for Pair { then, now } in pairs(then, now) {
        let bytes = |of: Option<(&str, u64)>| of.map_or(0, |(_, bytes)| bytes);
        let changed = GrownHolder {
            holder: now.or(then).map(|(label, _)| label.to_owned()).unwrap_or_default(),
            was_tensor: pairing::other_tensor(then, now),
            then: bytes(then),
            now: bytes(now),
            is_unlisted: is_full && then.is_none(),
            ..GrownHolder::default()
        };
        if changed.now < changed.then {
            changes.shrunk.push(changed);
        } else if changed.now > changed.then && (then.is_some() || changed.now > left_out) {
            changes.grown.push(changed);
        }
    }
    for all in [&mut changes.grown, &mut changes.shrunk] {
        all.sort_by_key(|changed| std::cmp::Reverse(changed.now.abs_diff(changed.then)));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::baseline::Figures;

    #[test]
    fn holders_are_stored_with_figures_and_show_growth() {
        let text = "cuda:0:\n  allocated_total: 9\n  allocations: 1\n  growth: 0\n  \
                    peak_allocated: 12\n  retained: 0\n  setup: 4\n  peak_holders:\n    \
                    matmul [2,4] f32 in attn: 8\n    new [1] f32: 4";
        let holders = Holders::from_yaml(text);
        assert_eq!(Figures::from_yaml(text).unwrap().to_yaml(&holders), text);
        let space = Space::Cuda(0);
        let mut now = holders.clone();
        let of_space = now.0.get_mut(&space).unwrap();
        of_space.insert("softmax [2,9] f32 in attn".to_owned(), 72);
        of_space.insert("new [1] f32".to_owned(), 5);
        let grown: Vec<_> =
            now.grown(&holders, space).into_iter().map(|g| (g.holder, g.then, g.now)).collect();
        assert_eq!(
            grown,
            [("softmax [2,9] f32 in attn".to_owned(), 0, 72), ("new [1] f32".to_owned(), 4, 5)]
        );
        assert!(now.grown(&Holders::default(), space).is_empty());
    }

    #[test]
    fn a_holder_below_the_cutoff_of_the_baseline_is_not_new() {
        let space = Space::Cuda(0);
        let holders = |bytes: &[(usize, u64)]| {
            let named = bytes.iter().map(|(name, bytes)| (format!("place {name}"), *bytes));
            Holders([(space, named.collect())].into())
        };
        let all: Vec<(usize, u64)> = (0..13).map(|at| (at, 1_300 - 100 * at as u64)).collect();
        let new = |then: &[(usize, u64)], now: &[(usize, u64)]| -> Vec<String> {
            let grown = holders(now).grown(&holders(then), space);
            let proven = |grown: &GrownHolder| if grown.is_new() { "" } else { " unlisted" };
            grown.into_iter().map(|grown| format!("{}{}", grown.holder, proven(&grown))).collect()
        };
        // The largest holder is gone, so the thirteenth is now among the twelve that are kept.
        assert_eq!(new(&all[..12], &all[1..]), [""; 0]);
        let larger = [&all[1..12], &[(12, 201)]].concat();
        assert_eq!(new(&all[..12], &larger), ["place 12 unlisted"], "it can have had 200 B");
        // A list of eleven is complete, because it is not full.
        assert_eq!(new(&all[..11], &all[1..]), ["place 11", "place 12"]);
    }

    fn changes(then: &[(&str, u64)], now: &[(&str, u64)]) -> HolderChanges {
        let labels = |all: &[(&str, u64)]| -> Labels {
            all.iter().map(|(label, bytes)| ((*label).to_owned(), *bytes)).collect()
        };
        compare(&labels(then), &labels(now))
    }

    #[test]
    fn a_larger_shape_is_the_same_holder_and_a_gone_one_is_listed() {
        let then = [("randn [128,1024] f32", 512), ("relu [8] f32", 32), ("sum [1] f32", 4)];
        let now = [("randn [192,1024] f32", 768), ("sum [1] f32", 4)];
        let HolderChanges { grown, shrunk } = changes(&then, &now);
        let [larger] = grown.as_slice() else { panic!("{grown:?}") };
        assert_eq!((larger.then, larger.now), (512, 768));
        assert_eq!(larger.was_tensor.as_deref(), Some("[128,1024] f32"));
        let [gone] = shrunk.as_slice() else { panic!("{shrunk:?}") };
        assert_eq!((gone.holder.as_str(), gone.then, gone.now), ("relu [8] f32", 32, 0));
        // The same holders are not listed.
        assert_eq!(changes(&then, &then), HolderChanges::default());
    }

    /// The holders of two runs that are taken from few names, so that many are alike.
    fn random(next: &mut impl FnMut() -> u64, most: u64) -> Labels {
        (0..next() % most)
            .map(|_| {
                let name = ["randn", "matmul", "new"][(next() % 3) as usize];
                let (rows, columns) = (1 + next() % 4, 1 + next() % 3);
                let label = match next() % 4 {
                    0 => name.to_owned(),
                    1 => format!("{name} [{rows}] f32 in attn"),
                    _ => format!("{name} [{rows},{columns}] f32"),
                };
                (label, next() % 9)
            })
            .collect()
    }

    #[test]
    fn the_rows_of_any_two_peaks_add_up_to_the_difference() {
        let mut state = 7_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 11
        };
        let (mut paired, mut rests) = (0, 0);
        for _ in 0..3_000 {
            let (mut then, now) = (random(&mut next, 24), random(&mut next, 24));
            let sum = |labels: &Labels| labels.values().sum::<u64>();
            let [was, is] = [sum(&then), sum(&now)];
            while then.len() > KEPT_HOLDERS {
                let (_, smallest) =
                    then.iter().map(|(name, bytes)| (bytes, name.clone())).min().unwrap();
                then.remove(&smallest);
            }
            let HolderChanges { grown, shrunk } = compare(&then, &now);
            let rows = || grown.iter().chain(&shrunk);
            let rest = GrownHolder::others(was, is, rows());
            let total: i128 = rows().chain(&rest).map(GrownHolder::difference).sum();
            assert_eq!(total, i128::from(is) - i128::from(was), "{then:?} {now:?}");
            assert!(grown.iter().all(|row| row.difference() > 0));
            assert!(shrunk.iter().all(|row| row.difference() < 0));
            // Each holder of the two runs is in at most one row.
            let mut names: Vec<&str> = rows().map(|row| row.holder.as_str()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{then:?} {now:?}");
            paired += usize::from(rows().any(|row| row.was_tensor.is_some()));
            rests += usize::from(rest.is_some());
        }
        assert!(paired > 300 && rests > 300, "{paired} {rests}");
    }

    #[test]
    fn a_holder_whose_shape_is_unknown_in_one_run_is_not_new() {
        let space = Space::Cuda(0);
        let holders = |labels: &[(&str, u64)]| {
            let named = labels.iter().map(|(label, bytes)| ((*label).to_owned(), *bytes));
            Holders([(space, named.collect())].into())
        };
        let new = |then: &[(&str, u64)], now: &[(&str, u64)]| -> Vec<(String, u64)> {
            let grown = holders(now).grown(&holders(then), space);
            grown.into_iter().map(|grown| (grown.holder, grown.then)).collect()
        };
        let (plain, shaped) = ("zeros in attn", "zeros [2,4] f32 in attn");
        assert_eq!(new(&[(plain, 8)], &[(shaped, 8)]), []);
        assert_eq!(new(&[(shaped, 8)], &[(plain, 9)]), [(plain.to_owned(), 8)]);
        // Another scope is another holder, and so is one of two that fit.
        for then in [&[("zeros in mlp", 8)][..], &[("zeros", 8)]] {
            assert_eq!(new(then, &[(shaped, 9)]), [(shaped.to_owned(), 0)], "{then:?}");
        }
        let other = "zeros [4,4] f32 in attn";
        let unknown = [(shaped.to_owned(), 0), (other.to_owned(), 0)];
        assert_eq!(new(&[(shaped, 8), (other, 8)], &[(plain, 9)]), [(plain.to_owned(), 0)]);
        assert_eq!(new(&[(plain, 8)], &[(other, 9), (shaped, 9)]), unknown);
        assert_eq!(new(&[(plain, 8)], &[(plain, 8), (shaped, 9)]), [(shaped.to_owned(), 0)]);
    }
}
