//! Finds the line below a comment in a source, in a constant function.

/// The start of the comment that names the scenarios of the next line.
const MARK: &[u8] = b"// leaks: ";

/// Number of the line (the first is 1) of `source` below the comment `// leaks: ONE, ANOTHER` that
/// names `name`.
///
/// # Panics
///
/// When no line, or more than one, matches. In a constant, that is a compiler error.
pub const fn line_of(source: &str, name: &str) -> u32 {
    let (source, name) = (source.as_bytes(), name.as_bytes());
    let (mut found, mut line, mut at) = (0, 1, 0);
    while at < source.len() {
        if source[at] == b'\n' {
            line += 1;
        } else if source[at] == b'/' && starts_with(source, at, MARK) {
            at += MARK.len();
            if names(source, at, name) {
                assert!(found == 0, "two `leaks:` comments name the scenario");
                found = line + 1;
            }
            continue;
        }
        at += 1;
    }
    assert!(found > 0, "no `leaks:` comment names the scenario");
    found
}

const fn starts_with(source: &[u8], at: usize, start: &[u8]) -> bool {
    let mut i = 0;
    while i < start.len() {
        if at + i >= source.len() || source[at + i] != start[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// True if `name` is one of the words from `at` to the end of the line.
const fn names(source: &[u8], mut at: usize, name: &[u8]) -> bool {
    let mut starts = true;
    while at < source.len() && source[at] != b'\n' {
        let end = at + name.len();
        let ends = end >= source.len() || !is_word(source[end]);
        if starts && ends && starts_with(source, at, name) {
            return true;
        }
        starts = !is_word(source[at]);
        at += 1;
    }
    false
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
