//! Why there is no answer to what fits.

use memcheck_core::exit;
use memcheck_core::search::RangeError;

use crate::error::Expected;
use crate::matching::NoMatch;

/// Why a search cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FitError {
    /// No test, or several names.
    #[error("fit wants one test: write its path, or a part of it")]
    NoName,
    /// `--from` and `--to`.
    #[error("--from and --to: {0}")]
    Range(RangeError),
    /// No test matches.
    #[error(transparent)]
    None(#[from] NoMatch),
    /// No test that matches has the case.
    #[error("no test that matches `{test}` has a case `{param}`: {known}")]
    NoParam {
        /// What was written.
        test: String,
        /// The case.
        param: String,
        /// The cases that there are.
        known: String,
    },
    /// The case is no number.
    #[error("the case `{0}` of `{1}` is `{2}`: only a number can be searched for")]
    NotNumber(String, String, String),
    /// `--case` with a value that there is none of.
    #[error("no test that matches `{0}` has the case `{1}={2}`:\n{list}", list = .3.join("\n"))]
    NoCase(String, String, String, Vec<String>),
    /// Several tests match, or one with several values of its other cases.
    #[error("`{0}` matches {count}, fit wants one:\n{list}", count = .1.len(), list = .1.join("\n"))]
    Several(String, Vec<String>),
    /// A device without a capacity.
    #[error("`{0}` runs on the CPU, which has no capacity to fit into")]
    NoCapacity(String),
    /// The body failed for want of something else than memory.
    #[error("{param}={value} on {device}: {code}: {message}")]
    Ended {
        /// The case.
        param: String,
        /// Its value.
        value: u64,
        /// The device.
        device: String,
        /// The finding.
        code: &'static str,
        /// What it says.
        message: String,
        /// The exit code that goes with it.
        exit_code: u8,
    },
}

impl Expected for FitError {
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
            Self::NoCapacity(_) => "`--device sim:rtx4090` needs no GPU; a body takes a device",
            Self::Ended { .. } => {
                "what fails for another reason says nothing of room: --from and --to keep the \
                 search among values that work"
            }
            Self::NoCase(..) | Self::NotNumber(..) | Self::Range(_) => return None,
        };
        Some(hint.to_owned())
    }
}
