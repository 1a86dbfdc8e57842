//! Suggestions for filters that select no test.

/// From 0 to 1. clap uses the same threshold for its suggestions.
const ALIKE: f64 = 0.7;

/// A filter can be a mistyped subcommand, or a subcommand that is not the first argument.
pub(crate) fn suggestion(filters: &[String]) -> Option<String> {
    if let Some(word) = filters.iter().find(|filter| crate::invocation::cli::is_subcommand(filter))
    {
        return Some(format!("`cargo memcheck {word} …`: the subcommand comes first"));
    }
    let command = crate::invocation::cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let first = filters.first()?;
    let (likeness, name) = names
        .map(|name| (strsim::jaro(first, name), name))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (likeness > ALIKE).then(|| format!("did you mean `cargo memcheck {name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_subcommand_is_suggested_and_a_filter_is_not() {
        let suggestion = |line: &str| {
            suggestion(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        for (typed, name) in [("lsit", "list"), ("acept mem", "accept"), ("profil x", "profile")] {
            let meant = suggestion(typed).unwrap_or_default();
            assert_eq!(meant, format!("did you mean `cargo memcheck {name}`?"), "{typed}");
        }
        assert!(suggestion("a review").unwrap().contains("the subcommand comes first"));
        for filter in ["llama::kv_cache", "bert", "training_step", ""] {
            assert_eq!(suggestion(filter), None, "{filter}");
        }
    }
}
