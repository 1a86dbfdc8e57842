//! The errors of a search for the largest value that fits.

use memcheck_core::search::RangeError;
use memcheck_core::wire::exit;

use crate::discovery::matching::NoMatch;
use crate::system::error::CommandError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FitError {
    #[error("fit needs one test: write its path, or a part of it")]
    NoName,
    #[error("--from and --to: {0}")]
    Range(RangeError),
    #[error(transparent)]
    None(#[from] NoMatch),
    #[error("no test that matches `{test}` has a case `{param}`: {known}")]
    NoParam {
        /// The name on the command line.
        test: String,
        param: String,
        known: String,
    },
    #[error("the case `{0}` of `{1}` is `{2}`: fit searches numbers only")]
    NotNumber(String, String, String),
    #[error("no test that matches `{0}` has the case `{1}={2}`:\n{list}", list = .3.join("\n"))]
    NoCase(String, String, String, Vec<String>),
    #[error("`{0}` matches {count}, but fit needs exactly one:\n{list}", count = .1.len(), list = .1.join("\n"))]
    Several(String, Vec<String>),
    #[error("`{0}` runs on the CPU, which has no capacity")]
    NoCapacity(String),
    #[error("{param}={value} on {device}: {code}: {message}")]
    Ended {
        param: String,
        value: u64,
        device: String,
        code: &'static str,
        message: String,
        /// For the class of the finding.
        exit_code: u8,
    },
}

impl CommandError for FitError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::None(none) => none.exit_code(),
            Self::Ended { exit_code, .. } => *exit_code,
            _ => exit::USAGE,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::None(none) => return none.hint(),
            Self::NoName => "`cargo memcheck list` shows the tests",
            Self::NoParam { .. } => {
                "`#[mem_test(cases(batch = [1, 8]))]` gives a test a case, and \
                 `trial.case(\"batch\")?` reads it"
            }
            Self::Several(..) => {
                "write the whole path; --case NAME=VALUE chooses among the other cases"
            }
            Self::NoCapacity(_) => {
                "`--device sim:rtx4090` needs no GPU; the body must take a `&Device`"
            }
            Self::Ended { .. } => {
                "this failure is not a lack of room: --from and --to restrict the search to \
                 values that work"
            }
            Self::NoCase(..) | Self::NotNumber(..) | Self::Range(_) => return None,
        };
        Some(hint.to_owned())
    }
}
