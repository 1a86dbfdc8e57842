//! The characters of a name or a text that a reader acts on instead of showing them, and their escaped form. They are
//! control characters, characters that change the direction of text, separators of lines, and characters that XML
//! excludes.

/// True if a name must not have this character raw. Line ends and tabs are such characters too.
pub fn is_special(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}'
        )
}

/// The character as Rust writes it in a string: `\n`, `\u{1b}`.
pub fn escaped(c: char) -> String {
    match c {
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        c => c.escape_unicode().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_written_as_in_rust() {
        for (c, text) in [
            ('\n', "\\n"),
            ('\0', "\\u{0}"),
            ('\u{1b}', "\\u{1b}"),
            ('\u{7f}', "\\u{7f}"),
            ('\u{85}', "\\u{85}"),
            ('\u{2028}', "\\u{2028}"),
            ('\u{202e}', "\\u{202e}"),
            ('\u{2069}', "\\u{2069}"),
            ('\u{ffff}', "\\u{ffff}"),
        ] {
            assert!(is_special(c), "{text}");
            assert_eq!(escaped(c), text);
        }
        for c in [' ', 'a', 'é', '\u{a0}', '\u{2026}', '\u{fffd}', '😀', 'ש'] {
            assert!(!is_special(c), "{c}");
        }
    }
}
