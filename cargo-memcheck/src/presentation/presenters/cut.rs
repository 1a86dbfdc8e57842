//! Shortens a text to a number of columns, between words or between the parts of a path, and breaks it
//! into lines.

const DOTS: &str = "\u{2026}";

/// The text if it fits into `columns`, or else its beginning with an ellipsis. It ends between two
/// words or parts of a path, unless that would leave out more than half of the columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if console::measure_text_width(text) <= columns {
        return text.to_owned();
    }
    let kept = console::truncate_str(text, columns.saturating_sub(1), "");
    let next = text[kept.len()..].chars().next();
    let is_boundary = |letter: char| letter.is_whitespace() || matches!(letter, '/' | ':' | ',');
    // A path keeps its separator, and a word loses the space behind it.
    let boundary = match next.is_some_and(char::is_whitespace) {
        true => kept.len(),
        false => kept
            .char_indices()
            .rev()
            .find(|(_, it)| is_boundary(*it))
            .map_or(0, |(at, it)| at + it.len_utf8()),
    };
    let whole = kept[..boundary].trim_end();
    let is_enough = 2 * console::measure_text_width(whole) >= columns;
    format!("{}{DOTS}", if is_enough { whole } else { kept.as_ref() })
}

/// Lines of `columns`, broken between words only: a path that is too long stays whole, so that it can be
/// copied, and so does a word with hyphens.
pub(crate) fn lines<'a>(columns: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(columns)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// The first line of a text, and the rest in a second one, which ends with an ellipsis if it is too long.
pub(crate) fn in_two(text: &str, first: usize, second: usize) -> (String, Option<String>) {
    let start = textwrap::wrap(text, lines(first)).into_iter().next().unwrap_or_default();
    let rest = text.strip_prefix(start.as_ref()).unwrap_or_default().trim_start();
    let rest = (!rest.is_empty()).then(|| cut(rest, second));
    (start.into_owned(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_between_words_and_a_path_between_its_parts() {
        let text = "src/model.rs:12  app::Model::forward  matmul";
        assert_eq!(cut(text, text.len()), text);
        assert_eq!(cut(text, 40), "src/model.rs:12  app::Model::forward\u{2026}");
        assert_eq!(cut(text, 37), "src/model.rs:12  app::Model::forward\u{2026}");
        assert_eq!(cut(text, 36), "src/model.rs:12  app::Model::\u{2026}");
        assert_eq!(cut("a_single_long_word", 9), "a_single\u{2026}");
        assert_eq!(cut("b a_single_long_word", 9), "b a_sing\u{2026}", "half would be lost");
        assert_eq!(cut("[64,256] f32 / [9] f32", 16), "[64,256] f32 /\u{2026}");
        assert_eq!(cut("\u{fc}ber/\u{fc}ber", 7), "\u{fc}ber/\u{2026}");
        for columns in 1..text.len() {
            assert!(console::measure_text_width(&cut(text, columns)) <= columns, "{columns}");
        }
    }
}
