//! The call sites of a finding, as entries of a short text: one for each line of the program.

use super::{Line, LinePart, line, relation};
use crate::judgement::finding::{Code, Site, Via};
use crate::presentation::by_line::sites_by_line;
use crate::size::{self, both};

/// More operations of one line are counted.
const MOST_OPERATIONS: usize = 2;

/// Call sites of one line, or one group of blocks without a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineEntry {
    /// The line, with its function and the dependency that it called; `None` if it is not known.
    pub(super) place: Option<String>,
    has_file: bool,
    operations: String,
    amount: String,
    /// Bytes of all sites.
    pub(super) bytes: u64,
    /// The number of call sites.
    pub(super) sites: usize,
}

/// One entry for each line and its function.
pub(super) fn entries(sites: &[Site]) -> Vec<LineEntry> {
    sites_by_line(sites, place).iter().map(|sites| LineEntry::new(sites)).collect()
}

impl LineEntry {
    /// The sites must have one line.
    pub(super) fn new(sites: &[&Site]) -> Self {
        let sum = |of: fn(&Site) -> u64| {
            sites.iter().fold(0, |sum: u64, site| sum.saturating_add(of(site)))
        };
        let first = sites.first();
        Self {
            place: first.and_then(|site| place(site)),
            has_file: first.is_some_and(|site| site.file.is_some() || site.via.is_some()),
            operations: operations(sites),
            amount: match sites {
                [only] => amount(only),
                _ => {
                    let blocks = size::blocks(sum(|site| site.count));
                    let rate = sum(|site| site.bytes_per_iteration);
                    format!("{blocks}, {}{}", both(sum(|site| site.bytes)), notes(sites, rate))
                }
            },
            bytes: sum(|site| site.bytes),
            sites: sites.len(),
        }
    }

    /// The lines of text.
    pub(super) fn lines(&self, code: Code) -> Vec<Line> {
        let Some(place) = &self.place else {
            return vec![line(LinePart::Amount, format!("  {}", self.amount))];
        };
        let relation = relation(code);
        let relation = if self.has_file { relation } else { &relation.replace(" at ", " in ") };
        let mut lines = vec![line(LinePart::Place, format!("  {relation}{place}"))];
        if !self.operations.is_empty() {
            lines.push(line(LinePart::Operation, format!("    {}", self.operations)));
        }
        lines.push(line(LinePart::Amount, format!("    {}", self.amount)));
        lines
    }
}

fn place(site: &Site) -> Option<String> {
    let place = site.place()?;
    let function = site.function.as_deref().map(|function| format!(" ({function})"));
    let program = format!("{place}{}", function.unwrap_or_default());
    Some(match &site.via {
        Some(Via { file, line, function }) => {
            let dependency = format!("{function} ({file}:{line})");
            // A thread of a dependency can allocate without a call from the program.
            let caller = site.file.as_ref().map(|_| format!(", called from {program}"));
            dependency + &caller.unwrap_or_default()
        }
        None => program,
    })
}

/// `matmul [64,256] f32 in head, relu [64,256] f32 and 2 others`.
fn operations(sites: &[&Site]) -> String {
    let mut all: Vec<String> = Vec::new();
    for site in sites {
        let parts = [site.operation.clone(), site.tensor.clone()];
        let scope = site.scope.as_ref().map(|scope| format!("in {scope}"));
        let parts: Vec<String> = parts.into_iter().chain([scope]).flatten().collect();
        let operation = parts.join(" ");
        if !operation.is_empty() && !all.contains(&operation) {
            all.push(operation);
        }
    }
    let others = all.len().saturating_sub(MOST_OPERATIONS);
    if others > 1 {
        all.truncate(MOST_OPERATIONS);
        all.push(format!("{others} others"));
    }
    match all.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        last => last.map(|(last, _)| last.clone()).unwrap_or_default(),
    }
}

fn amount(site: &Site) -> String {
    let amount = match site.block {
        Some(_) => blocks(site),
        None => format!("{}, {}", size::blocks(site.count), both(site.bytes)),
    };
    let note = site.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    format!("{amount}{note}")
}

/// The rate of all sites if each of them grows, or else their notes, each once.
fn notes(sites: &[&Site], rate: u64) -> String {
    if sites.iter().all(|site| site.bytes_per_iteration > 0) {
        return format!(": {} per iteration", both(rate));
    }
    let mut notes: Vec<&str> = Vec::new();
    for note in sites.iter().filter_map(|site| site.note.as_deref()) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if notes.is_empty() { String::new() } else { format!(": {}", notes.join(", ")) }
}

/// The number of blocks, and their size if all have the same.
pub fn blocks(site: &Site) -> String {
    match site.block {
        Some(block) => format!("{} x {}", size::exact(site.count), both(block)),
        None => size::exact(site.count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(line: u32, operation: &str, rate: u64) -> Site {
        Site {
            file: Some("a.rs".to_owned()),
            line: Some(line),
            operation: Some(operation.to_owned()),
            block: Some(rate),
            bytes: 10 * rate,
            count: 10,
            bytes_per_iteration: rate,
            note: Some("steady".to_owned()),
            ..Site::default()
        }
    }

    fn texts(sites: &[Site]) -> Vec<String> {
        let lines = entries(sites).into_iter().flat_map(|entry| entry.lines(Code::Leak));
        lines.map(|line| line.text).collect()
    }

    #[test]
    fn the_sites_of_one_line_are_one_entry_with_their_sum() {
        let sites = [site(1, "matmul", 4_096), site(2, "add", 4), site(1, "relu", 1_024)];
        let expected = [
            "  allocated at a.rs:1",
            "    matmul and relu",
            "    20 blocks, 51,200 B (50.0 KiB): 5,120 B (5.00 KiB) per iteration",
            "  allocated at a.rs:2",
            "    add",
            "    10 x 4 B: steady",
        ];
        assert_eq!(texts(&sites), expected);
        let many: Vec<Site> =
            ["matmul", "relu", "sum", "affine"].map(|name| site(1, name, 8)).into();
        assert_eq!(texts(&many)[1], "    matmul, relu and 2 others");
        assert_eq!(texts(&many[..3])[1], "    matmul, relu and sum");
        let all = entries(&many);
        assert_eq!((all.len(), all[0].sites, all[0].bytes), (1, 4, 320));
    }

    #[test]
    fn sites_that_do_not_grow_keep_their_notes_and_other_lines_stay_apart() {
        let holds =
            |line, note: &str| Site { note: Some(note.to_owned()), ..site(line, "matmul", 0) };
        let sites = [holds(1, "activations"), holds(1, "set-up"), holds(1, "set-up")];
        assert_eq!(texts(&sites)[2], "    30 blocks, 0 B: activations, set-up");
        let other = Site { function: Some("f".to_owned()), ..holds(1, "set-up") };
        assert_eq!(entries(&[holds(1, "set-up"), other, holds(2, "set-up")]).len(), 3);
    }

    #[test]
    fn the_sites_of_a_group_of_blocks_are_not_joined_with_those_of_another_group() {
        let group = Site { block: Some(64), count: 1, bytes: 64, ..Site::default() };
        let sites = [group.clone(), site(1, "a", 0), site(1, "b", 0), group, site(1, "a", 0)];
        let all = entries(&sites);
        let shown: Vec<_> = all.iter().map(|it| (it.place.is_some(), it.sites)).collect();
        assert_eq!(shown, [(false, 1), (true, 2), (false, 1), (true, 1)]);
    }

    #[test]
    fn a_place_without_a_file_is_a_function() {
        let frame = crate::measurement::stack::Frame {
            function: "lib::f".to_owned(),
            file: None,
            line: None,
        };
        let site = Site { stack: vec![frame], count: 1, ..Site::default() };
        let lines = |code| entries(std::slice::from_ref(&site))[0].lines(code).remove(0).text;
        assert_eq!(lines(Code::Leak), "  allocated in lib::f");
        assert_eq!(lines(Code::OutOfMemory), "  lib::f");
    }
}
