//! Finds the holder of the run that is the same as one of the baseline. A baseline has no lines, so
//! that the operation, its scope and its tensor identify a holder.

use std::collections::BTreeMap;

use crate::judgement::grown_holder::{tensor, without_tensor};

/// Bytes by description.
pub(super) type Labels = BTreeMap<String, u64>;

/// A holder of the baseline and the same one of the run; one of them can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair<'a> {
    pub(super) then: Option<(&'a str, u64)>,
    pub(super) now: Option<(&'a str, u64)>,
}

/// Every holder of both runs, in exactly one pair.
///
/// Holders with equal descriptions are the same. Of the others, those with the same operation and
/// scope are compared: the ones whose tensors differ least are the same if no other one differs as
/// little. The last tensor of a body can have no shape, because it is dropped before it is examined:
/// then it is the one holder that has a shape in the other run.
pub(super) fn pairs<'a>(then: &'a Labels, now: &'a Labels) -> Vec<Pair<'a>> {
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    let mut groups: BTreeMap<String, [Vec<Unpaired<'a>>; 2]> = BTreeMap::new();
    for (side, (own, other)) in [(then, now), (now, then)].into_iter().enumerate() {
        for (label, &bytes) in own {
            match other.get(label) {
                Some(&known) if side == 0 => {
                    let (then, now) =
                        (Some((label.as_str(), bytes)), Some((label.as_str(), known)));
                    pairs.push(Pair { then, now });
                }
                Some(_) => {}
                None => groups.entry(without_tensor(label)).or_default()[side]
                    .push(Unpaired::new(label, bytes)),
            }
        }
    }
    for [mut then, mut now] in groups.into_values() {
        while let Some((before, after)) = clearest(&then, &now) {
            let (before, after) = (then.remove(before), now.remove(after));
            pairs.push(Pair { then: Some(before.holder), now: Some(after.holder) });
        }
        pairs.extend(then.iter().map(|open| Pair { then: Some(open.holder), now: None }));
        pairs.extend(now.iter().map(|open| Pair { then: None, now: Some(open.holder) }));
    }
    pairs
}

/// The tensor of the baseline if both are known and differ.
pub(super) fn other_tensor(then: Option<(&str, u64)>, now: Option<(&str, u64)>) -> Option<String> {
    let of = |holder: (&'_ str, u64)| tensor(holder.0).map(|at| holder.0[at].to_owned());
    let (then, now) = (of(then?)?, of(now?)?);
    (then != now).then_some(then)
}

/// A holder without one of the same description.
#[derive(Debug, Clone, Copy)]
struct Unpaired<'a> {
    holder: (&'a str, u64),
    /// The dimensions and the element type.
    tensor: Option<(&'a str, &'a str)>,
}

impl<'a> Unpaired<'a> {
    fn new(label: &'a str, bytes: u64) -> Self {
        let tensor = tensor(label).and_then(|at| label[at].split_once("] "));
        Self {
            holder: (label, bytes),
            tensor: tensor.map(|it| (it.0.trim_start_matches('['), it.1)),
        }
    }

    /// The number of dimensions that differ, and of element types; `None` for tensors of another rank.
    fn distance(&self, other: &Self) -> Option<usize> {
        let ((own_shape, own_type), (other_shape, other_type)) = match (self.tensor, other.tensor) {
            (Some(own), Some(other)) => (own, other),
            (None, None) => return Some(0),
            _ => return Some(usize::MAX),
        };
        let [own, other] =
            [own_shape, other_shape].map(|shape| shape.split(',').collect::<Vec<_>>());
        let differing = own.iter().zip(&other).filter(|(one, two)| one != two).count();
        (own.len() == other.len()).then_some(differing + usize::from(own_type != other_type))
    }
}

/// The two that differ least, if neither of them differs as little from another one.
fn clearest(then: &[Unpaired<'_>], now: &[Unpaired<'_>]) -> Option<(usize, usize)> {
    let found = then.iter().enumerate().filter_map(|(before, one)| {
        let (distance, after) = nearest(one, now)?;
        let back = nearest(&now[after], then)?;
        (back == (distance, before)).then_some((distance, before, after))
    });
    found.min().map(|(_, before, after)| (before, after))
}

/// The one that differs least, with the distance, unless several do.
fn nearest(one: &Unpaired<'_>, others: &[Unpaired<'_>]) -> Option<(usize, usize)> {
    let distances = others.iter().enumerate();
    let known = distances.filter_map(|(at, other)| Some((one.distance(other)?, at)));
    let (mut least, mut is_only) = (None, false);
    for (distance, at) in known {
        match least {
            Some((known, _)) if known < distance => {}
            Some((known, _)) if known == distance => is_only = false,
            _ => (least, is_only) = (Some((distance, at)), true),
        }
    }
    least.filter(|_| is_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs of two lists as `then > now`, without those that are equal.
    fn paired(then: &[&str], now: &[&str]) -> Vec<String> {
        let labels =
            |all: &[&str]| -> Labels { all.iter().map(|label| ((*label).to_owned(), 1)).collect() };
        let (then, now) = (labels(then), labels(now));
        let name = |of: Option<(&str, u64)>| of.map_or("-", |it| it.0).to_owned();
        let mut all: Vec<String> = pairs(&then, &now)
            .into_iter()
            .filter(|pair| pair.then != pair.now)
            .map(|pair| format!("{} > {}", name(pair.then), name(pair.now)))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn the_tensors_of_one_operation_that_differ_least_are_the_same_holder() {
        let one = paired(&["randn [128,8] f32"], &["randn [192,8] f32"]);
        assert_eq!(one, ["randn [128,8] f32 > randn [192,8] f32"]);
        // Each has another number of columns.
        let two = ["randn [128,8] f32", "randn [128,64] f32"];
        let larger = ["randn [192,8] f32", "randn [192,64] f32"];
        let expected =
            ["randn [128,64] f32 > randn [192,64] f32", "randn [128,8] f32 > randn [192,8] f32"];
        assert_eq!(paired(&two, &larger), expected);
        let wider = paired(&["randn [8,8] f16"], &["randn [8,8] f32"]);
        assert_eq!(wider, ["randn [8,8] f16 > randn [8,8] f32"]);
    }

    #[test]
    fn holders_that_fit_several_or_none_stay_apart() {
        // Another operation, another scope, and another rank.
        for other in ["relu [192,8] f32", "randn [192,8] f32 in mlp", "randn [192,8,1] f32"] {
            let apart = paired(&["randn [128,8] f32"], &[other]);
            assert_eq!(apart.len(), 2, "{other}");
        }
        // Both differ in one dimension.
        let several = paired(&["randn [8,8] f32"], &["randn [16,8] f32", "randn [8,16] f32"]);
        assert_eq!(several.len(), 3, "{several:?}");
        // A shape that is in both runs is not one of them.
        let same = paired(&["randn [8] f32"], &["randn [8] f32", "randn [9] f32"]);
        assert_eq!(same, ["- > randn [9] f32"]);
    }
}
