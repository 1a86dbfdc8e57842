//! Suggestions for filters that match no test.

use strsim::{jaro, jaro_winkler, osa_distance};

use super::printed::PrintedCommand;

/// From 0 to 1. clap uses the same threshold for its suggestions.
const ALIKE: f64 = 0.7;
/// The most mistakes in a mistyped subcommand. `bert` is a filter, although it resembles `bisect`.
const MISTAKES: usize = 2;

/// A filter can be a mistyped subcommand, or a subcommand that is not the first argument.
pub(crate) fn suggestion(filters: &[String]) -> Option<String> {
    if let Some(word) = filters.iter().find(|filter| super::cli::is_subcommand(filter)) {
        return Some(format!(
            "{} …: the subcommand comes first",
            PrintedCommand::Subcommand.quoted([word])
        ));
    }
    let first = filters.first()?;
    let (likeness, name) = super::cli::subcommands()
        .iter()
        .map(|name| (jaro(first, name), name))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let is_typo = likeness > ALIKE && osa_distance(first, name) <= MISTAKES;
    is_typo.then(|| format!("did you mean {}?", PrintedCommand::Subcommand.quoted([name])))
}

/// The name of a test that is most like a filter that matches none.
pub(crate) fn nearest<'a>(
    filter: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let likeness = |name: &str| {
        let ends = name.match_indices("::").map(|(at, _)| &name[at + 2..]);
        let parts = name.split("::").chain(ends).chain([name]);
        parts.map(|part| jaro_winkler(filter, part)).fold(0.0, f64::max)
    };
    let (best, name) = names
        .into_iter()
        .map(|name| (likeness(name), name))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best > ALIKE).then_some(name)
}

/// `the filter `x` matches no memory test; the nearest is `y``, for each filter without a test.
pub(crate) fn unmatched(filters: &[String], exact: bool, names: &[&str]) -> Vec<String> {
    let matches = |filter: &str, name: &str| match exact {
        true => name == filter,
        false => name.contains(filter),
    };
    filters
        .iter()
        .filter(|filter| !names.iter().any(|name| matches(filter, name)))
        .map(|filter| match nearest(filter, names.iter().copied()) {
            Some(near) => format!("the filter `{filter}` matches no test: did you mean `{near}`?"),
            None => format!("the filter `{filter}` matches no test"),
        })
        .collect()
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

    #[test]
    fn a_filter_without_a_test_is_reported_with_the_nearest_name() {
        let names = ["llama::kv_cache", "bert::forward", "training_step"];
        let filters = |list: &[&str]| list.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let found = unmatched(&filters(&["kv_cahce", "bert", "zzz"]), false, &names);
        assert_eq!(
            found,
            [
                "the filter `kv_cahce` matches no test: did you mean `llama::kv_cache`?",
                "the filter `zzz` matches no test",
            ]
        );
        assert_eq!(unmatched(&filters(&["bert"]), true, &names).len(), 1);
        assert!(unmatched(&filters(&["training_step"]), true, &names).is_empty());
    }
}
