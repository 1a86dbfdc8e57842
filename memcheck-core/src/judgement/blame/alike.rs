//! Joins call sites that differ only in the callers of their line. Every list of call sites must
//! use this module, so that the terminal, the reports and the profile have the same entries.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use crate::growth::survivors::Reading;
use crate::judgement::diagnosis::Suspect;
use crate::measurement::attribution::{Survivors, Tensor};
use crate::measurement::stack::{Frame, Stack};
use crate::size::counted;

/// Every field that a report prints must be here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SiteKey<'a> {
    line: Option<(String, Option<String>)>,
    via: Option<String>,
    operation: Option<String>,
    tensor: Option<&'a Tensor>,
    scope: &'a str,
}

impl<'a> SiteKey<'a> {
    pub(super) fn new(stack: &Stack, tensor: Option<&'a Tensor>, scope: &'a str) -> Self {
        let innermost = stack.frames.first();
        let line = stack.user().or(innermost);
        Self {
            line: line.map(|frame| (frame.path(), frame.place())),
            via: stack.dependency().and_then(Frame::short_place),
            operation: stack.operation().or_else(|| innermost.map(Frame::short)),
            tensor,
            scope,
        }
    }
}

/// Groups items by key, in the order of the first item of each group.
pub(super) fn group_by_key<T, K: Eq + Hash>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut known: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        let at = *known.entry(key(&item)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Survivors that look the same in a report.
#[derive(Debug, Clone)]
pub struct SiteGroup<'s, 'a> {
    /// The survivors, those that grow the fastest first; never empty.
    pub suspects: Vec<&'s Suspect<'a>>,
    /// The reading of all of them together.
    pub reading: Reading,
}

impl SiteGroup<'_, '_> {
    /// Bytes that survive.
    pub fn bytes(&self) -> u64 {
        self.suspects.iter().map(|suspect| suspect.survivors.group.bytes()).sum()
    }

    /// Blocks that survive.
    pub fn count(&self) -> u64 {
        self.suspects.iter().map(|suspect| suspect.survivors.group.count()).sum()
    }
}

/// The types of the tensors of survivors: `[256,256] f32 and [256] f32`. `None` without tensors.
pub(super) fn tensors(survivors: &Survivors) -> Option<String> {
    let (largest, others) = survivors.tensors.split_first()?;
    Some(match others {
        [] => largest.to_string(),
        [other] => format!("{largest} and {other}"),
        _ => {
            let others = counted(others.len() as u64, "other shape", "other shapes");
            format!("{largest} and {others}")
        }
    })
}

/// Joins survivors that look the same in a report, the fastest growing first, then the largest.
pub fn alike<'s, 'a>(
    suspects: impl IntoIterator<Item = &'s Suspect<'a>>,
) -> Vec<SiteGroup<'s, 'a>> {
    let groups = group_by_key(suspects, |suspect| {
        let survivors = suspect.survivors;
        let look = SiteKey::new(suspect.stack, None, &survivors.scope);
        (look, tensors(survivors), survivors.group.block, suspect.reading.kind())
    });
    let mut alike: Vec<SiteGroup<'s, 'a>> = groups
        .into_iter()
        .filter_map(|suspects| {
            let reading = suspects.iter().map(|suspect| suspect.reading).reduce(Reading::plus)?;
            Some(SiteGroup { suspects, reading })
        })
        .collect();
    alike.sort_by_key(|alike| Reverse((alike.reading.bytes_per_iteration, alike.bytes())));
    alike
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::diagnosis::Evidence;
    use crate::measurement::attribution::builder::{Run, enlarged, once, steady};
    use crate::measurement::record::example::GPU;

    fn entries(run: Run) -> Vec<(u64, u64, String)> {
        let mut record = run.record();
        // One line of the program, reached from different callers.
        for (caller, stack) in record.attribution.as_mut().unwrap().stacks.iter_mut().enumerate() {
            let line = stack.frames.last_mut().unwrap();
            line.line = Some(1);
            let caller = Frame { line: Some(100 + caller as u32), ..line.clone() };
            stack.frames.push(caller);
        }
        let evidence = Evidence::of(&record, GPU).unwrap();
        alike(&evidence.suspects)
            .iter()
            .map(|alike| (alike.bytes(), alike.count(), alike.reading.describe()))
            .collect()
    }

    #[test]
    fn call_sites_that_look_the_same_are_summed() {
        let matmul = ["candle_core::tensor::Tensor::matmul"];
        let two = Run::default().place(&matmul, steady(512)).place(&matmul, steady(512));
        let described = "steady, 1,024 B (1.00 KiB) per iteration".to_owned();
        assert_eq!(entries(two), [(10_240, 20, described)]);
        let buffers = Run::default().place(&[], enlarged(64)).place(&[], enlarged(64));
        let described = "replaced by larger ones, 128 B more in every iteration".to_owned();
        assert_eq!(entries(buffers), [(3_152, 2, described)]);
    }

    #[test]
    fn call_sites_that_differ_in_a_printed_field_stay_separate() {
        let [matmul, relu] =
            ["matmul", "relu"].map(|name| format!("candle_core::tensor::Tensor::{name}"));
        let place = |run: Run| run.place(&[&matmul], steady(512));
        for other in [
            Run::default().place(&[&relu], steady(512)),
            Run::default().place(&[&matmul], steady(256)),
            Run::default().place(&[&matmul], once(512, 3)),
            place(Run::default()).scope("attn"),
            place(Run::default()).tensors(&[&[128]]),
            place(Run::default()).tensors(&[&[128], &[64]]),
        ] {
            assert_eq!(entries(place(other)).len(), 2);
        }
        let in_other_iterations = Run::default().place(&[], once(512, 3)).place(&[], once(512, 4));
        assert_eq!(entries(in_other_iterations).len(), 2, "their notes differ");
    }

    #[test]
    fn the_label_of_a_call_site_with_several_shapes_does_not_claim_that_all_are_the_largest() {
        let label = |shapes: &[&[u64]]| {
            let record = Run::default().place(&[], steady(512)).tensors(shapes).record();
            let evidence = Evidence::of(&record, GPU).unwrap();
            super::super::surviving(&alike(&evidence.suspects)[0]).tensor
        };
        assert_eq!(label(&[]), None);
        assert_eq!(label(&[&[256, 256]]).unwrap(), "[256,256] f32");
        assert_eq!(label(&[&[256, 256], &[256]]).unwrap(), "[256,256] f32 and [256] f32");
        let several = label(&[&[256, 256], &[256], &[64]]).unwrap();
        assert_eq!(several, "[256,256] f32 and 2 other shapes");
    }
}
