//! The lines that a note names, each once.

use std::cmp::Reverse;

use crate::size::{both, counted};

/// The most lines that a note names.
const MOST_LINES: usize = 3;

/// Bytes by line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<(String, u64)>,
}

impl Lines {
    /// Adds bytes of `line`, as in `at src/model.rs:42`.
    pub(super) fn add(&mut self, line: String, bytes: u64) {
        match self.lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, sum)) => *sum += bytes,
            None => self.lines.push((line, bytes)),
        }
    }

    pub(super) fn join(&mut self, other: Lines) {
        other.lines.into_iter().for_each(|(line, bytes)| self.add(line, bytes));
    }

    /// True if each of these lines has at least as many bytes in `other`.
    pub(super) fn are_within(&self, other: &Lines) -> bool {
        let within = |line: &String, bytes: u64| {
            other.lines.iter().any(|(known, most)| known == line && bytes <= *most)
        };
        self.lines.iter().all(|(line, bytes)| within(line, *bytes))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// `70 B at src/a.rs:1, 50 B at src/b.rs:2`, the most bytes first.
    pub(super) fn listed(&self) -> String {
        let mut sorted: Vec<&(String, u64)> = self.lines.iter().collect();
        sorted.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let (shown, others) = sorted.split_at(sorted.len().min(MOST_LINES));
        let mut lines: Vec<String> =
            shown.iter().map(|(line, bytes)| format!("{} {line}", both(*bytes))).collect();
        if !others.is_empty() {
            let bytes = others.iter().map(|(_, bytes)| bytes).sum();
            let count = counted(others.len() as u64, "other place", "other places");
            lines.push(format!("{} at {count}", both(bytes)));
        }
        lines.join(", ")
    }
}
