//! `-D`, `-W` and `-A`: the levels of bookkeeping findings.
//!
//! The parser is written by hand because the order of all three flags matters. As in rustc, the
//! last flag that names a code wins.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use memcheck_core::judgement::finding::Level;

/// Codes and levels, in the order of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LevelFlags(pub(crate) Vec<(String, Level)>);

const FLAGS: [(&str, char, Level, &str); 3] = [
    ("deny", 'D', Level::Deny, "Make a bookkeeping finding end with exit code 5"),
    ("warn", 'W', Level::Warn, "Only report a bookkeeping finding"),
    ("allow", 'A', Level::Allow, "Do not report a bookkeeping finding"),
];

impl Args for LevelFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, short, _, help)| {
            command.arg(
                Arg::new(*name)
                    .short(*short)
                    .long(*name)
                    .value_name("CODE")
                    .action(ArgAction::Append)
                    .help_heading("Findings")
                    .help(*help),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LevelFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut levels: Vec<(usize, String, Level)> = Vec::new();
        for (name, _, level, _) in FLAGS {
            let codes = matches.get_many::<String>(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            levels.extend(places.zip(codes).map(|(place, code)| (place, code.clone(), level)));
        }
        levels.sort_by_key(|(place, ..)| *place);
        Ok(Self(levels.into_iter().map(|(_, code, level)| (code, level)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_command_line() {
        let command = LevelFlags::augment_args(Command::new("x"));
        let matches =
            command.get_matches_from(["x", "-D", "improved", "-A", "improved", "--deny=not-built"]);
        let LevelFlags(levels) = LevelFlags::from_arg_matches(&matches).unwrap();
        let expected =
            [("improved", Level::Deny), ("improved", Level::Allow), ("not-built", Level::Deny)];
        assert_eq!(levels, expected.map(|(code, level)| (code.to_owned(), level)));
    }
}
