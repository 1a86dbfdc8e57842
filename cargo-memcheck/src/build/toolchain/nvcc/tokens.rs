//! The tokens of preprocessed C++.

/// A token. Numbers, texts and characters have no content that a reader of declarations needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// The text of a literal without its quotes, such as the `C` of `extern "C"`.
    Text(String),
    Number,
    /// One character of punctuation.
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is_word(&self, expected: &str) -> bool {
        self.word() == Some(expected)
    }
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if c.is_whitespace() => c.len_utf8(),
            // A directive that the preprocessor leaves, such as `#pragma`.
            '#' => rest.find('\n').unwrap_or(rest.len()),
            'R' if rest.starts_with("R\"") => raw_text(rest),
            '"' | '\'' => {
                let length = quoted(rest, first);
                tokens.push(match first {
                    // A text without an end has no closing quote to remove.
                    '"' => Token::Text(rest[1..length].trim_end_matches('"').to_owned()),
                    _ => Token::Number,
                });
                length
            }
            c if c.is_ascii_digit() => {
                tokens.push(Token::Number);
                // A digit can be followed by a separator, a point and a suffix.
                rest.find(|c: char| !is_word(c) && c != '.' && c != '\'').unwrap_or(rest.len())
            }
            c if is_word(c) => {
                let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_owned()));
                length
            }
            c => {
                tokens.push(Token::Sign(c));
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of a literal with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            // The preprocessor warns of a text without an end, and goes on in the next line.
            '\n' => return at,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `R"name(…)name"`.
fn raw_text(text: &str) -> usize {
    let Some((name, _)) = text[2..].split_once('(') else { return text.len() };
    let end = format!("){name}\"");
    text.find(&end).map_or(text.len(), |at| at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_one_token() {
        let word = |text: &str| Token::Word(text.to_owned());
        let found = tokens(
            "a1 = \"}\\\"{\" + '{' + 1'000.5f;\n#pragma unroll {\nR\"x({ )\" )x\" asm_(\"mov.b32 {%0}\")",
        );
        let expected = [
            word("a1"),
            Token::Sign('='),
            Token::Text("}\\\"{".trim_end_matches('"').to_owned()),
            Token::Sign('+'),
            Token::Number,
            Token::Sign('+'),
            Token::Number,
            Token::Sign(';'),
            word("asm_"),
            Token::Sign('('),
            Token::Text("mov.b32 {%0}".to_owned()),
            Token::Sign(')'),
        ];
        assert_eq!(found, expected);
        assert_eq!(tokens("\"no end\nb"), [Token::Text("no end".to_owned()), word("b")]);
    }
}
