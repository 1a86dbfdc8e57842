//! Entries of one line of the program together, so that a report shows the line once, with their sum.

use std::collections::HashMap;
use std::hash::Hash;

/// The entries of each line, in the order of the first of each. Those without a line are alone.
pub(super) fn by_line<'e, T, L: Hash + Eq>(
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
