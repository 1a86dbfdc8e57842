//! Escapes text for each form of output. Text that comes from tests, records, archives or file names can contain control characters,
//! characters that change the direction of text, and lines that a CI runner takes for commands. The
//! writer of each form of output passes everything through [`escape`] or [`terminal`], so that no
//! caller has to know which text can be trusted.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use memcheck_core::characters::{escaped, is_special};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people: `\u{1b}`.
    Text,
    /// The text of a JSON document; the values do not change.
    Json,
    /// The text of an XML or HTML document.
    Markup,
}

impl Form {
    fn push(self, c: char, out: &mut String) {
        match (self, c) {
            (Self::Json, c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            (Self::Text, '\t') => out.push_str("    "),
            // Other characters are not allowed in XML, or have another meaning in HTML.
            (Self::Markup, ':' | '#' | '\t') => out.push_str(&format!("&#{};", u32::from(c))),
            (Self::Text | Self::Markup, c) => out.push_str(&escaped(c)),
        }
    }
}

/// Line ends stay as they are. A text without anything to escape is returned without a copy.
pub(crate) fn escape<'t>(text: impl Into<Cow<'t, str>>, form: Form) -> Cow<'t, str> {
    let text = text.into();
    let mut out = String::new();
    let mut commands = Commands::default();
    // Everything before this position is written.
    let mut written = 0;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let is_live = commands.is_live(c, &text[end..]);
        if c != '\n' && (is_live || is_special(c)) {
            if written == 0 {
                out.reserve(text.len());
            }
            out.push_str(&text[written..at]);
            form.push(c, &mut out);
            written = end;
        }
    }
    if written == 0 { text } else { Cow::Owned(out + &text[written..]) }
}

/// For one line of text: line ends are escaped too.
pub(crate) fn line(text: &str) -> String {
    escape(text, Form::Text).replace('\n', "\\n")
}

/// For the terminal. Only the colors of [`styled`] remain.
pub(crate) fn terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut commands = Commands::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((code, after)) = mark(rest) {
            out.push_str(&match code.strip_prefix(LINK) {
                Some(address) => format!("\x1b]8;;{address}\x1b\\"),
                None => format!("\x1b[{code}m"),
            });
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let is_live = commands.is_live(c, rest);
        if c != '\n' && (is_live || is_special(c)) {
            Form::Text.push(c, &mut out);
        } else {
            out.push(c);
        }
    }
    out
}

/// Recognises the two characters that make a line a command of a CI runner. GitHub's runner trims
/// the line before it looks for `::`, and finds `##[` anywhere in it. Azure and TeamCity have
/// `##vso[` and `##teamcity[`.
#[derive(Debug, Default)]
struct Commands {
    /// True after the first letter or digit of the line.
    has_text: bool,
    last: Option<char>,
}

impl Commands {
    fn is_live(&mut self, c: char, rest: &str) -> bool {
        // Most characters of a report.
        if c.is_ascii_alphanumeric() && self.has_text {
            self.last = None;
            return false;
        }
        let opens = |c: char| c == '[' || c.is_ascii_alphabetic();
        let is_live = match c {
            // More than white space can precede the colons, because .NET ignores invisible
            // characters.
            ':' => {
                // rustc writes `::: src/lib.rs:1:1`, and the name of a command ends with two colons.
                let line = rest.lines().next().unwrap_or_default();
                let is_of_rustc =
                    line.strip_prefix(":: ").is_some_and(|place| !place.contains("::"));
                let is_first = !self.has_text && self.last != Some(':');
                is_first && rest.starts_with(':') && !is_of_rustc
            }
            '#' => self.last == Some('#') && rest.starts_with(opens),
            _ => false,
        };
        self.has_text = c != '\n' && (self.has_text || c.is_alphanumeric());
        self.last = Some(c);
        is_live
    }
}

/// Begins a mark, which is an operating system command for every reader of escape sequences, and so
/// has no width. No test can know the number, so that only [`styled`] can make a mark.
fn secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| format!("\x1b]{:016x};", RandomState::new().hash_one(())))
}

/// The code of the mark at the start of a text, and the rest of the text.
fn mark(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(secret())?.split_once('\x07')
}

/// `code` is the parameter of an SGR sequence: `31;1`. [`terminal`] writes the sequence.
pub(crate) fn styled(code: &str, text: &str) -> String {
    let secret = secret();
    format!("{secret}{code}\x07{text}{secret}0\x07")
}

const LINK: &str = "link ";

/// A text that a terminal links to an address, which must have no special characters. [`terminal`] writes
/// the sequence (OSC 8).
pub(crate) fn linked(address: &str, text: &str) -> String {
    let secret = secret();
    format!("{secret}{LINK}{address}\x07{text}{secret}{LINK}\x07")
}

/// One line of the output of a test or of cargo: its colors stay, and end with the line. Other
/// control sequences (move the cursor, erase the line) are removed; programs print them for
/// progress bars.
pub(crate) fn colors(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut parts = line.split("\x1b[");
    out.push_str(parts.next().unwrap_or_default());
    let mut has_colors = false;
    for part in parts {
        match control_sequence(part) {
            Some((code, 'm', rest)) if code.chars().all(|c| "0123456789;:".contains(c)) => {
                has_colors = true;
                out.push_str(&format!("{}{code}\x07{rest}", secret()));
            }
            Some((_, _, rest)) => out.push_str(rest),
            None => out.extend(["\x1b[", part]),
        }
    }
    if has_colors { out + &format!("{}0\x07", secret()) } else { out }
}

/// The parameters and the last character of a control sequence (ECMA-48), and the text after it.
fn control_sequence(text: &str) -> Option<(&str, char, &str)> {
    let end = text.find(|c| !matches!(c, ' '..='?'))?;
    let last = text[end..].chars().next().filter(|c| matches!(c, '@'..='~'))?;
    Some((&text[..end], last, &text[end + 1..]))
}

/// A random word for a pair of workflow commands.
pub(crate) fn token() -> String {
    format!(
        "memcheck-{:016x}{:016x}",
        RandomState::new().hash_one(0),
        RandomState::new().hash_one(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_escapes_what_its_reader_would_act_on() {
        for (text, plain, json, markup) in [
            (
                "a\u{1b}]52;c;x\u{7}",
                "a\\u{1b}]52;c;x\\u{7}",
                "a\\u001b]52;c;x\\u0007",
                "a\\u{1b}]52;c;x\\u{7}",
            ),
            ("a\u{9b}31m", "a\\u{9b}31m", "a\\u009b31m", "a\\u{9b}31m"),
            ("\u{202e}a\u{2066}", "\\u{202e}a\\u{2066}", "\\u202ea\\u2066", "\\u{202e}a\\u{2066}"),
            ("a\r\tb\n", "a\\r    b\n", "a\\u000d\\u0009b\n", "a\\r&#9;b\n"),
            ("::error::x", "\\u{3a}:error::x", "\\u003a:error::x", "&#58;:error::x"),
            (
                " \u{a0}\n\t ::x",
                " \u{a0}\n     \\u{3a}:x",
                " \u{a0}\n\\u0009 \\u003a:x",
                " \u{a0}\n&#9; &#58;:x",
            ),
            ("\u{feff}::x", "\\u{feff}\\u{3a}:x", "\\ufeff\\u003a:x", "\\u{feff}&#58;:x"),
            ("a ##[error]b", "a #\\u{23}[error]b", "a #\\u0023[error]b", "a #&#35;[error]b"),
            ("##vso[x]", "#\\u{23}vso[x]", "#\\u0023vso[x]", "#&#35;vso[x]"),
            ("## a a::b ###", "## a a::b ###", "## a a::b ###", "## a a::b ###"),
            ("  ::: src/a.rs", "  ::: src/a.rs", "  ::: src/a.rs", "  ::: src/a.rs"),
            ("::: a ::b", "\\u{3a}:: a ::b", "\\u003a:: a ::b", "&#58;:: a ::b"),
            (":::a", "\\u{3a}::a", "\\u003a::a", "&#58;::a"),
        ] {
            assert_eq!(escape(text, Form::Text), plain, "{text:?}");
            assert_eq!(escape(text, Form::Json), json, "{text:?}");
            assert_eq!(escape(text, Form::Markup), markup, "{text:?}");
            assert_eq!(terminal(text), plain, "{text:?}");
        }
        assert_eq!(line("a\n::b"), "a\\n\\u{3a}:b");
    }

    #[test]
    fn only_our_own_colors_and_those_of_an_output_reach_the_terminal() {
        let strong = styled("1", "a");
        assert_eq!(terminal(&strong), "\x1b[1ma\x1b[0m");
        assert_eq!(terminal(&styled("1", "\x1b[31ma")), "\x1b[1m\\u{1b}[31ma\x1b[0m");
        assert_eq!(terminal(&styled("1", "::error::")), "\x1b[1m\\u{3a}:error::\x1b[0m");
        let forged = "\x1b]0123456789abcdef;1\x07a";
        assert_eq!(terminal(forged), "\\u{1b}]0123456789abcdef;1\\u{7}a");

        let shown = |line: &str| terminal(&colors(line));
        assert_eq!(shown("\x1b[31mred\x1b[m plain"), "\x1b[31mred\x1b[m plain\x1b[0m");
        assert_eq!(shown("\x1b[38;2;1:2mx"), "\x1b[38;2;1:2mx\x1b[0m");
        assert_eq!(shown("\x1b[K\x1b[1m  Updating\x1b[?25l x"), "\x1b[1m  Updating x\x1b[0m");
        assert_eq!(shown("\x1b[2\u{7}\x1b[é"), "\\u{1b}[2\\u{7}\\u{1b}[é");
        for foreign in [
            "\x1b[2J",
            "\x1b[?25lm",
            "\x1b[",
            "\x1b]0;t\x07",
            "\x1b[31\x1b[6n",
            "\x1bP+q\x1b\\",
            "\x1b[>4;2m",
        ] {
            let shown = shown(foreign);
            assert!(!shown.chars().any(char::is_control), "{foreign:?}: {shown:?}");
        }
        assert_eq!(console::measure_text_width(&styled("1", "abc")), 3);
        let link = linked("file:///w/a.rs", "a.rs:1");
        let shown = "\x1b]8;;file:///w/a.rs\x1b\\a.rs:1\x1b]8;;\x1b\\";
        assert_eq!((terminal(&link).as_str(), console::measure_text_width(&link)), (shown, 6));
    }
}
