//! Words of a command line that a person pastes into a shell.

/// In quotes in which no character has a meaning.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// In quotes only if a shell would give one of its characters a meaning.
pub(crate) fn word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@%+=,".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        quote(word)
    }
}

/// The same for a flag, whose hyphens need no quotes.
pub(crate) fn argument(text: &str) -> String {
    let rest = text.trim_start_matches('-');
    let hyphens = &text[..text.len() - rest.len()];
    match rest {
        "" if !hyphens.is_empty() => text.to_owned(),
        _ => format!("{hyphens}{}", word(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_needs_no_quotes() {
        for flag in ["--ci", "-p", "--"] {
            assert_eq!(argument(flag), flag);
        }
        assert_eq!([argument("a b"), argument("--x=a b")], ["'a b'", "--'x=a b'"]);
        assert_eq!(argument(""), "''");
    }

    #[test]
    fn a_shell_reads_each_word_as_it_is() {
        for word in [
            "a b",
            "it's",
            "$(touch x)",
            "`id`",
            "a;b",
            "a\nb",
            "-x",
            "!!",
            "\"\\",
            "*",
            "",
            "~",
            "'';id;''",
        ] {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
            assert_eq!(shlex::split(&quote(word)), Some(vec![word.to_owned()]));
            assert_eq!(super::word(word), quote(word));
        }
        assert_eq!(super::word("llama::kv_cache"), "llama::kv_cache");
    }
}
