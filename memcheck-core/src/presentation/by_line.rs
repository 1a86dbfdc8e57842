//! Entries of one line of the program together, so that a report shows the line once, with their sum.

use std::collections::HashMap;
use std::hash::Hash;

use crate::judgement::finding::Site;

/// The entries of each line, in the order of the first of each. Those without a line are alone.
pub fn by_line<'e, T, L: Hash + Eq>(
    entries: &'e [T],
    line: impl Fn(&'e T) -> Option<L>,
) -> Vec<Vec<&'e T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    let mut known: HashMap<L, usize> = HashMap::new();
    for entry in entries {
        let at = line(entry).map(|line| *known.entry(line).or_insert(groups.len()));
        match at.and_then(|at| groups.get_mut(at)) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

/// The same for call sites. A group of blocks without a line is followed by the sites that hold its
/// blocks, so that sites before and after it stay apart.
pub fn sites_by_line<'e, L: Hash + Eq>(
    sites: &'e [Site],
    line: impl Fn(&'e Site) -> Option<L>,
) -> Vec<Vec<&'e Site>> {
    let mut number = 0;
    let groups: Vec<usize> = sites
        .iter()
        .map(|site| {
            number += usize::from(line(site).is_none());
            number
        })
        .collect();
    let numbered: Vec<(usize, &Site)> = groups.into_iter().zip(sites).collect();
    let grouped = by_line(&numbered, |(group, site)| Some((*group, line(site)?)));
    grouped.into_iter().map(|of| of.into_iter().map(|(_, site)| *site).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_line_are_together_and_those_without_a_line_are_alone() {
        let entries = [(Some(7), 'a'), (None, 'b'), (Some(9), 'c'), (Some(7), 'd'), (None, 'e')];
        let groups = by_line(&entries, |(line, _)| *line);
        let names: Vec<String> =
            groups.iter().map(|group| group.iter().map(|(_, name)| name).collect()).collect();
        assert_eq!(names, ["ad", "b", "c", "e"]);
    }
}
