//! Recognizes a mistyped subcommand, which would be a filter otherwise.

use strsim::osa_distance;

/// The subcommand that a first word must mean, because it differs from its name in one or two
/// letters. A filter can be any word, so that short words must have the letters of the name.
pub(super) fn mistyped_subcommand(word: &str) -> Option<&'static str> {
    super::subcommands().iter().copied().find(|name| is_mistyped(word, name))
}

fn is_mistyped(word: &str, name: &str) -> bool {
    // `plain` is not `explain`.
    if word.chars().next() != name.chars().next() {
        return false;
    }
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let most = match name.len() {
        0..=4 => {
            return word != name && sorted(word) == sorted(name) && osa_distance(word, name) == 1;
        }
        5..=6 => 1,
        _ => 2,
    };
    (1..=most).contains(&osa_distance(word, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_nearly_a_subcommand_is_one() {
        for (typed, name) in [
            ("profle", "profile"),
            ("lsit", "list"),
            ("acept", "accept"),
            ("reprot", "report"),
            ("reveiw", "review"),
            ("estimat", "estimate"),
            ("docter", "doctor"),
        ] {
            assert_eq!(mistyped_subcommand(typed), Some(name), "{typed}");
        }
        for filter in
            ["bert", "plain", "last", "runs", "fits", "batch", "llama", "profile", "mem::list", "a"]
        {
            assert_eq!(mistyped_subcommand(filter), None, "{filter}");
        }
    }
}
