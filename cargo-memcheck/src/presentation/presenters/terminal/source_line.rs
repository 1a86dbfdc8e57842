//! The text of the program's line below the place of a finding: `34 | kept.push(h);`.

use memcheck_core::presentation::text::{Line, LinePart};

use crate::presentation::presenters::cut;

/// The column of the text.
const INDENT: usize = 4;
/// A narrower terminal gets lines of this width.
const LEAST: usize = 20;
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
    let lines = broken(line, text, columns.map(|columns| columns.saturating_sub(BELOW + INDENT)));
    let lines = lines.into_iter().map(|text| format!("{:INDENT$}{text}", ""));
    parts.splice(at + 1..at + 1, lines.map(|text| Line { part: LinePart::Source, text }));
}

/// The text in one line or, if that is too long for `columns`, in two, which are broken between words.
fn broken(line: u32, text: &str, columns: Option<usize>) -> Vec<String> {
    let number = format!("{line} | ");
    let Some(columns) = columns else { return vec![number + text] };
    let room = columns.max(LEAST).saturating_sub(number.len());
    let (first, rest) = cut::in_two(text, room, room);
    let below = format!("{:>1$}", "| ", number.len());
    std::iter::once(number + &first).chain(rest.map(|rest| below + &rest)).collect()
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
            let at = parts.iter().position(|it| it.part == LinePart::Source)?;
            let lines = parts[at..].iter().take_while(|it| it.part == LinePart::Source);
            Some((at, lines.map(|it| it.text.clone()).collect::<Vec<_>>()))
        };
        let whole = vec!["    3 | let h = randn(the, shape)?;".to_owned()];
        assert_eq!(added(("a.rs", 3), None), Some((3, whole.clone())));
        assert_eq!(added(("b.rs", 3), Some(80)), Some((4, whole)));
        assert_eq!(added(("rs", 3), None), None);
        assert_eq!(added(("c.rs", 3), None), None);
    }

    #[test]
    fn a_long_text_has_two_lines_and_then_an_end() {
        let text = "let bias = Tensor::ones((rows(), 1024), DType::F32, device)?;";
        let whole = format!("128 | {text}");
        assert_eq!(broken(128, text, None), [whole.as_str()]);
        assert_eq!(broken(128, text, Some(whole.len())), [whole.as_str()]);
        let two = ["128 | let bias = Tensor::ones((rows(), 1024), DType::F32,", "    | device)?;"];
        assert_eq!(broken(128, text, Some(whole.len() - 1)), two);
        let cut = ["128 | let bias =", "    | Tensor::\u{2026}"];
        assert_eq!(broken(128, text, Some(0)), cut);
        let hostile = "\u{1f600} \u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}";
        assert_eq!(broken(1, hostile, Some(0)).len(), 2);
    }
}
