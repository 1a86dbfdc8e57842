//! The holders of the memory at the peak, as a baseline keeps them.

use std::collections::BTreeMap;

use super::super::yaml;
use super::SpaceEntry;
use crate::judgement::blame;
use crate::judgement::finding::GrownHolder;
use crate::measurement::record::Record;
use crate::space::Space;

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
        let before = then.0.get(&space).unwrap_or(&none);
        if before.is_empty() {
            return Vec::new();
        }
        // A full list may have dropped holders up to the size of its smallest one.
        let is_full = before.len() >= KEPT_HOLDERS;
        let left_out = before.values().min().copied().filter(|_| is_full).unwrap_or(0);
        let now_of_space = self.0.get(&space).unwrap_or(&none);
        let mut grown: Vec<GrownHolder> = now_of_space
            .iter()
            .map(|(holder, &now)| {
                let known = counterpart(holder, now_of_space, before);
                let then = known.unwrap_or(0);
                let is_unlisted = is_full && known.is_none();
                GrownHolder { holder: holder.clone(), place: None, then, now, is_unlisted }
            })
            .filter(|grown| grown.now > grown.then && !(grown.then == 0 && grown.now <= left_out))
            .collect();
        grown.sort_by_key(|grown| std::cmp::Reverse(grown.now - grown.then));
        grown
    }

    /// The holders of this baseline that hold less of `space` in a record with attribution, the
    /// largest difference first.
    pub fn shrunk(&self, record: &Record, space: Space) -> Vec<GrownHolder> {
        let Some(attribution) = &record.attribution else { return Vec::new() };
        let all = blame::labels(attribution, space);
        let none = BTreeMap::new();
        let of_space = self.0.get(&space).unwrap_or(&none);
        let mut shrunk: Vec<GrownHolder> = of_space
            .iter()
            .map(|(holder, &then)| {
                let now = counterpart(holder, of_space, &all).unwrap_or(0);
                GrownHolder { holder: holder.clone(), then, now, ..GrownHolder::default() }
            })
            .filter(|holder| holder.now < holder.then)
            .collect();
        shrunk.sort_by_key(|holder| std::cmp::Reverse(holder.then - holder.now));
        shrunk
    }
}

/// The bytes of a holder in the other run. The last tensor of a body can have no shape, because it
/// is dropped before it is examined: then the one holder counts that differs in its shape only.
fn counterpart(
    label: &str,
    own: &BTreeMap<String, u64>,
    other: &BTreeMap<String, u64>,
) -> Option<u64> {
    if let Some(&bytes) = other.get(label) {
        return Some(bytes);
    }
    let plain = without_shape(label);
    let has_shape = plain != label;
    let only = |labels: &BTreeMap<String, u64>, others: &BTreeMap<String, u64>, shaped: bool| {
        let mut alike = labels.iter().filter(|(name, _)| {
            let without = without_shape(name);
            without == plain && (without != **name) == shaped && !others.contains_key(*name)
        });
        let first = alike.next().map(|(_, &bytes)| bytes);
        first.filter(|_| alike.next().is_none())
    };
    only(own, other, has_shape)?;
    only(other, own, !has_shape)
}

/// `matmul in attn` of `matmul [2,4] f32 in attn`.
fn without_shape(label: &str) -> String {
    let shape = label.find(" [").and_then(|start| {
        let dtype = start + label[start..].find("] ")? + 2;
        let length = label[dtype..].find(' ').unwrap_or(label.len() - dtype);
        Some((start, dtype + length))
    });
    match shape {
        Some((start, end)) => format!("{}{}", &label[..start], &label[end..]),
        None => label.to_owned(),
    }
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
        // Another shape or scope is another holder, and so is one of two that fit.
        for then in [&[("zeros [2,5] f32 in attn", 8)][..], &[("zeros in mlp", 8)], &[("zeros", 8)]]
        {
            assert_eq!(new(then, &[(shaped, 9)]), [(shaped.to_owned(), 0)], "{then:?}");
        }
        let other = "zeros [4,4] f32 in attn";
        let unknown = [(shaped.to_owned(), 0), (other.to_owned(), 0)];
        assert_eq!(new(&[(shaped, 8), (other, 8)], &[(plain, 9)]), [(plain.to_owned(), 0)]);
        assert_eq!(new(&[(plain, 8)], &[(other, 9), (shaped, 9)]), unknown);
        assert_eq!(new(&[(plain, 8)], &[(plain, 8), (shaped, 9)]), [(shaped.to_owned(), 0)]);
        assert_eq!(without_shape("new [1] f32"), "new");
        assert_eq!(without_shape("a [b"), "a [b");
    }
}
