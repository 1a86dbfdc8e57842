//! Text that an XML file can contain. XML 1.0 has no form for control characters, U+FFFE and U+FFFF, not even an escaped
//! one, and a parser must refuse the whole file because of one of them.

use std::borrow::Cow;

/// Without escape sequences, and with U+FFFD in place of each character that XML does not allow.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    match console::strip_ansi_codes(text) {
        stripped if stripped.chars().all(is_allowed) => stripped,
        stripped => stripped.chars().map(|c| if is_allowed(c) { c } else { '\u{fffd}' }).collect(),
    }
}

/// `Char` of the XML 1.0 specification.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_that_xml_does_not_allow_are_replaced() {
        assert_eq!(text("a\tb\n<&> é 😀 \u{85}"), "a\tb\n<&> é 😀 \u{85}");
        assert_eq!(
            text("a\0b\u{1b}[31mred\u{1b}[0m\u{fffe}\u{ffff}"),
            "a\u{fffd}bred\u{fffd}\u{fffd}"
        );
    }
}
