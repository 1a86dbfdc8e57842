//! The lines of the program that a sentence names: at most three, and the number of the others.

use std::path::Path;

use crate::measurement::stack::{Frame, Owner, Stack, TEST};
use crate::size::counted;

/// A sentence names so many lines.
const MOST_LINES: usize = 3;

/// Lines of the program, each once, the most important first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedLines {
    lines: Vec<(String, u32)>,
    /// Call sites without a line.
    unknown: usize,
}

impl NamedLines {
    /// Adds a line. One with an absolute path is outside of the program, and not added.
    pub(super) fn add(&mut self, file: &str, line: u32) {
        let is_known = self.lines.iter().any(|(known, at)| known == file && *at == line);
        if !is_known && Path::new(file).is_relative() {
            self.lines.push((file.to_owned(), line));
        }
    }

    /// Adds a call site whose line is not known.
    pub(super) fn add_unknown(&mut self) {
        self.unknown += 1;
    }

    /// Adds the innermost line of the program on a stack, within an iteration.
    pub(super) fn add_stack(&mut self, stack: &Stack) {
        let is_of_program = |frame: &&Frame| {
            frame.owner() == Owner::User && frame.line.is_some() && !frame.path().contains(TEST)
        };
        let frame = stack.of_iteration().iter().find(is_of_program);
        if let Some((file, line)) = frame.and_then(|it| it.file.as_deref().zip(it.line)) {
            self.add(file, line);
        }
    }

    /// `src/a.rs:30, :31 and src/b.rs:4`, or `src/a.rs:30, :31, :34 and 2 more lines`; `None` if
    /// there is no line.
    pub(super) fn text(&self) -> Option<String> {
        let (shown, others) = self.lines.split_at(self.lines.len().min(MOST_LINES));
        let rank = |file: &str| shown.iter().position(|(known, _)| known == file);
        let mut shown: Vec<&(String, u32)> = shown.iter().collect();
        shown.sort_by_key(|(file, line)| (rank(file), *line));
        let mut words: Vec<String> = Vec::new();
        let mut previous = "";
        for (file, line) in shown {
            let file = if file == previous { "" } else { file.as_str() };
            words.push(format!("{file}:{line}"));
            previous = if file.is_empty() { previous } else { file };
        }
        let hidden = others.len() + self.unknown;
        if words.is_empty() {
            return None;
        } else if self.unknown > 0 {
            words.push(counted(hidden as u64, "more call site", "more call sites"));
        } else if hidden > 0 {
            words.push(counted(hidden as u64, "more line", "more lines"));
        }
        let last = words.pop()?;
        Some(if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) })
    }
}

impl<'a> FromIterator<&'a Stack> for NamedLines {
    fn from_iter<T: IntoIterator<Item = &'a Stack>>(stacks: T) -> Self {
        let mut lines = Self::default();
        stacks.into_iter().for_each(|stack| lines.add_stack(stack));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[(&str, u32)]) -> Option<String> {
        let mut named = NamedLines::default();
        lines.iter().for_each(|(file, line)| named.add(file, *line));
        named.text()
    }

    #[test]
    fn lines_are_named_once_and_those_of_a_file_after_each_other() {
        assert_eq!(text(&[]), None);
        assert_eq!(text(&[("a.rs", 3), ("a.rs", 3)]).unwrap(), "a.rs:3");
        assert_eq!(
            text(&[("a.rs", 34), ("b.rs", 4), ("a.rs", 30)]).unwrap(),
            "a.rs:30, :34 and b.rs:4"
        );
        let five: Vec<(&str, u32)> = [9, 7, 8, 1, 2].map(|line| ("a.rs", line)).to_vec();
        assert_eq!(text(&five).unwrap(), "a.rs:7, :8, :9 and 2 more lines");
        assert_eq!(text(&[("/registry/a.rs", 3)]), None, "it is not a line of the program");
        let mut unknown = NamedLines::default();
        unknown.add_unknown();
        assert_eq!(unknown.text(), None);
        unknown.add("a.rs", 3);
        assert_eq!(unknown.text().unwrap(), "a.rs:3 and 1 more call site");
    }

    #[test]
    fn a_stack_has_its_innermost_line_of_an_iteration() {
        let frame = |function: &str, file: &str, line| Frame {
            function: function.to_owned(),
            file: Some(file.to_owned()),
            line: Some(line),
        };
        let frames = [
            frame(
                "candle_core::tensor::Tensor::zeros",
                "/registry/src/i/candle-core-1/src/a.rs",
                1,
            ),
            frame("app::step", "src/step.rs", 2),
            frame("mem::body", "tests/mem.rs", 3),
        ];
        let stack = |inner, outside| Stack {
            frames: frames[inner..].to_vec(),
            outside,
            ..Stack::default()
        };
        let text = |stack: &Stack| NamedLines::from_iter([stack]).text();
        assert_eq!(text(&stack(0, 1)).unwrap(), "src/step.rs:2");
        assert_eq!(text(&stack(2, 1)), None, "the line repeats the body");
    }
}
