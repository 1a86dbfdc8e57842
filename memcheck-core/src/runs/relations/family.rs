//! Families of cases that differ in sizes only, so that each figure has one law over them.

use std::collections::{BTreeMap, BTreeSet};

use crate::law::Sizes;
use crate::shape::{LEAST_VALUES, Scaling, whole_numbers};

/// Two values always lie on a straight line, so a parameter with fewer values than this is a size
/// only if an order names it or if no parameter has more.
const ENOUGH: usize = 3;

fn sizes<'a>(cases: &[&'a BTreeMap<String, String>], asked: &[Scaling]) -> BTreeSet<&'a String> {
    let names: BTreeSet<&String> = cases.iter().flat_map(|case| case.keys()).collect();
    let numbers: Vec<(&String, usize)> = names
        .into_iter()
        .filter_map(|name| {
            let values = cases.iter().filter_map(|case| case.get(name));
            Some((name, whole_numbers(values.map(String::as_str))?.len()))
        })
        .collect();
    let least =
        if numbers.iter().any(|(_, count)| *count >= ENOUGH) { ENOUGH } else { LEAST_VALUES };
    let is_named =
        |name: &String| asked.iter().any(|row| row.most.sizes().any(|size| size == name.as_str()));
    let is_size = |(name, count): &(&'a String, usize)| *count >= least || is_named(name);
    numbers.into_iter().filter(is_size).map(|(name, _)| name).collect()
}

/// The cases of one test that differ in sizes only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFamily {
    /// The parameters that all cases share, such as `dtype`; empty if all are sizes.
    pub common: BTreeMap<String, String>,
    /// The sizes of each case and its index in the given cases, in ascending order.
    pub members: Vec<(Sizes, usize)>,
}

/// The families of the cases of one test. `asked` are the requested figures.
pub fn families(cases: &[&BTreeMap<String, String>], asked: &[Scaling]) -> Vec<CaseFamily> {
    let sizes = sizes(cases, asked);
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
            CaseFamily { common, members }
        })
        .collect()
}
