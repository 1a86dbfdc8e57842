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

/// True for a name that is the same in a baseline, a report and an attribute: 1 to 64 ASCII letters,
/// digits, `_`, `-` and `.`.
pub fn is_word(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(is_letter)
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
    fn a_word_has_letters_digits_and_three_signs() {
        let long = "x".repeat(65);
        for (name, expected) in
            [("load", true), ("a-b.c_1", true), ("", false), ("a b", false), (&long, false)]
        {
            assert_eq!(is_word(name), expected, "{name}");
        }
    }

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
