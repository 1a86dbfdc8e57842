//! The parts of the command that a build can leave out, each by a feature of the crate. A part that is
//! left out is not in the help. Its names are refused with an error that names the feature, because
//! the first word of a command line would be a filter otherwise, and would start a build.

/// A part of the command.
#[derive(Debug)]
pub(crate) struct Part {
    /// The feature of cargo-memcheck.
    feature: &'static str,
    subcommands: &'static [&'static str],
    /// False if this build has left it out.
    pub(crate) is_built: bool,
}

pub(crate) const ARCHIVES: Part =
    Part { feature: "archives", subcommands: &["archive"], is_built: cfg!(feature = "archives") };

pub(crate) const COMPARISON: Part = Part {
    feature: "comparison",
    subcommands: &["compare", "diff", "bisect", "bisect-step", "history"],
    is_built: cfg!(feature = "comparison"),
};

pub(crate) const ESTIMATES: Part = Part {
    feature: "estimates",
    subcommands: &["estimate", "fit", "plan"],
    is_built: cfg!(feature = "estimates"),
};

pub(crate) const EXPORTS: Part =
    Part { feature: "exports", subcommands: &[], is_built: cfg!(feature = "exports") };

const PARTS: [Part; 4] = [ARCHIVES, COMPARISON, ESTIMATES, EXPORTS];

impl Part {
    /// The error of a build that has left out `what`.
    pub(crate) fn refusal(&self, what: &str) -> String {
        let feature = self.feature;
        format!(
            "{what} was left out of this build: install cargo-memcheck with `--features \
             {feature}`, or without `--no-default-features`"
        )
    }
}

/// The part of a subcommand that this build has left out.
pub(crate) fn left_out(subcommand: &str) -> Option<Part> {
    PARTS.into_iter().find(|part| !part.is_built && part.subcommands.contains(&subcommand))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::cli;

    #[test]
    fn the_subcommands_of_a_part_are_there_exactly_if_it_is_built() {
        for part in PARTS {
            for name in part.subcommands {
                let is_there = cli::command().find_subcommand(name).is_some();
                assert_eq!(is_there, part.is_built, "{name}");
                assert_eq!(left_out(name).is_some(), !part.is_built, "{name}");
            }
        }
        assert!(left_out("run").is_none());
    }
}
