//! Which cases of a test have one law: those that differ in sizes alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::law::Sizes;

/// Values that a parameter has at least to be a size. Two have a straight line
/// through whatever they do.
pub const LEAST_VALUES: usize = 3;

/// The values of a parameter, ascending, where it is a size: whole numbers, and
/// enough of them.
pub fn size_values<'a>(values: impl Iterator<Item = &'a str>) -> Option<BTreeSet<u64>> {
    let values: Option<BTreeSet<u64>> = values.map(|text| text.parse().ok()).collect();
    values.filter(|values| values.len() >= LEAST_VALUES)
}

/// The cases of one test that differ in sizes alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// What they have in common: `dtype` is `f32`. Empty where there is nothing else.
    pub common: BTreeMap<String, String>,
    /// Their places among the cases that were given, with their sizes, ascending.
    pub members: Vec<(Sizes, usize)>,
}

/// The families of the cases of one test.
pub fn families(cases: &[&BTreeMap<String, String>]) -> Vec<Family> {
    let names: BTreeSet<&String> = cases.iter().flat_map(|case| case.keys()).collect();
    let is_size = |name: &&String| {
        let values = cases.iter().filter_map(|case| case.get(*name));
        size_values(values.map(String::as_str)).is_some()
    };
    let sizes: BTreeSet<&String> = names.into_iter().filter(is_size).collect();
    let mut families: BTreeMap<BTreeMap<String, String>, Vec<(Sizes, usize)>> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let mut at = Sizes::new();
        let mut common = BTreeMap::new();
        for (name, value) in *case {
            match value.parse() {
                Ok(size) if sizes.contains(name) => {
                    at.insert(name.clone(), size);
                }
                _ => {
                    common.insert(name.clone(), value.clone());
                }
            }
        }
        families.entry(common).or_default().push((at, number));
    }
    families
        .into_iter()
        .map(|(common, mut members)| {
            members.sort();
            Family { common, members }
        })
        .collect()
}
