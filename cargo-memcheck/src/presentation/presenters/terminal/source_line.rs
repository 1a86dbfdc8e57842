//! The text of the program's line below the place of a finding: `34 | kept.push(h);`.

use memcheck_core::presentation::text::{Line, LinePart};

use crate::presentation::presenters::cut::cut;

/// The column of the text.
const INDENT: usize = 4;
/// The columns that the lines of a finding lose to the indentation of the terminal.
const BELOW: usize = super::layout::INDENT;

/// Adds `text` below the first line that names the place; without such a line, nothing.
pub(super) fn add(
    parts: &mut Vec<Line>,
    (file, line): (&str, u32),
    text: &str,
    columns: Option<usize>,
) {
    let place = format!("{file}:{line}");
    let has_place = |part: &Line| {
        part.part != LinePart::Summary
            && part.text.match_indices(&place).any(|(at, _)| {
                let next = part.text[at + place.len()..].chars().next();
                let before = part.text[..at].chars().next_back();
                !next.is_some_and(|next| next.is_ascii_digit())
                    && before.is_none_or(|it| it == ' ' || it == '(')
            })
    };
    let Some(at) = parts.iter().position(has_place) else { return };
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(BELOW + INDENT).max(20));
    let text = format!("{:INDENT$}{}", "", cut(&format!("{line} | {text}"), room));
    parts.insert(at + 1, Line { part: LinePart::Source, text });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_below_the_first_line_with_the_place() {
        let line = |part, text: &str| Line { part, text: text.to_owned() };
        let all = [
            line(LinePart::Summary, "leak: grows at a.rs:3"),
            line(LinePart::Place, "  allocated at a.rs:34 (mem::a)"),
            line(LinePart::Place, "  allocated at a.rs:3 (mem::a)"),
            line(LinePart::Amount, "  +1 B randn at b.rs:3 (new at the peak)"),
        ];
        let added = |at: (&str, u32), columns| {
            let mut parts = all.to_vec();
            add(&mut parts, at, "let h = randn(the, shape)?;", columns);
            let found = parts.iter().position(|it| it.part == LinePart::Source);
            found.map(|at| (at, parts[at].text.clone()))
        };
        let whole = "    3 | let h = randn(the, shape)?;".to_owned();
        assert_eq!(added(("a.rs", 3), None), Some((3, whole.clone())));
        assert_eq!(added(("b.rs", 3), Some(80)), Some((4, whole)));
        let (_, cut) = added(("a.rs", 3), Some(40)).unwrap();
        assert_eq!(cut, "    3 | let h = randn(the,\u{2026}");
        assert_eq!(added(("rs", 3), None), None);
        assert_eq!(added(("c.rs", 3), None), None);
    }
}
