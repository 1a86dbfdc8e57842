//! Writes the markup of a page: escapes it, and keeps a number and its unit on one line. Code stays as it
//! is, because readers copy it.

use maud::Markup;

use crate::system::escape::{Form, escape};

const UNITS: [&str; 9] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "s", "%"];
/// Elements whose text is not prose.
const VERBATIM: [&str; 5] = ["code", "pre", "script", "style", "title"];
const NO_BREAK_SPACE: char = '\u{a0}';

pub(super) fn page_text(page: &Markup) -> String {
    escape(units_kept_together(&page.0), Form::Markup).into_owned()
}

/// The page with a space that does not break between each number and its unit.
fn units_kept_together(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    // The elements that are open around the text, of those whose text stays as it is.
    let mut verbatim: Vec<&str> = Vec::new();
    for piece in page.split_inclusive('>') {
        let (text, tag) = piece.split_at(piece.find('<').unwrap_or(piece.len()));
        match verbatim.is_empty() {
            true => push_text(text, &mut out),
            false => out.push_str(text),
        }
        out.push_str(tag);
        let name = tag.trim_start_matches(['<', '/']);
        let name = &name[..name.find([' ', '>']).unwrap_or(name.len())];
        if tag.starts_with("</") && verbatim.last() == Some(&name) {
            verbatim.pop();
        } else if tag.starts_with('<') && VERBATIM.contains(&name) && !tag.starts_with("</") {
            verbatim.push(name);
        }
    }
    out
}

fn push_text(text: &str, out: &mut String) {
    let mut after_number = false;
    for (number, word) in text.split(' ').enumerate() {
        let letters = word.find(|c: char| !c.is_ascii_alphabetic() && c != '%');
        let is_unit = UNITS.contains(&&word[..letters.unwrap_or(word.len())]);
        if number > 0 {
            out.push(if after_number && is_unit { NO_BREAK_SPACE } else { ' ' });
        }
        out.push_str(word);
        after_number = word.ends_with(|c: char| c.is_ascii_digit());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_do_not_break() {
        let kept = |text: &str| units_kept_together(text).replace(NO_BREAK_SPACE, "_");
        for (page, expected) in [
            (
                "<p>the peak of 1,048,580 B (1.00 MiB), 12 %</p>",
                "<p>the peak of 1,048,580_B (1.0_MiB), 12_%</p>",
            ),
            ("0 B", "0_B"),
            ("in 2.03 s", "in 2.03_s"),
            ("2 Blocks, 3 seconds of 4 tests", "2 Blocks, 3 seconds of 4 tests"),
            ("a B", "a B"),
            ("<code>1 MiB</code> 1 MiB", "<code>1 MiB</code> 1_MiB"),
            (
                "<pre class=\"x\">1 B <code>1 B</code> 1 B</pre>",
                "<pre class=\"x\">1 B <code>1 B</code> 1 B</pre>",
            ),
            ("<td title=\"1 B\">1 B</td>", "<td title=\"1 B\">1_B</td>"),
            ("<style>a > b { width: 1 B }</style>", "<style>a > b { width: 1 B }</style>"),
        ] {
            assert_eq!(kept(page), expected);
        }
    }
}
