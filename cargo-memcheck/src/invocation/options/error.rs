//! The errors of a command line.

use memcheck_core::request::variables::{UnknownVariable, VariableError};
use memcheck_core::wire::exit;

use crate::system::error::CommandError;
use crate::system::launcher::LauncherError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    #[error(transparent)]
    Code(#[from] memcheck_core::judgement::finding::CodeError),
    #[error(transparent)]
    Variable(#[from] VariableError),
    #[error(transparent)]
    UnknownVariable(#[from] UnknownVariable),
    #[error("`{0}` is not a partition: write hash:M/N with M from 1 to N")]
    Partition(String),
    #[error("`{0}` is not a number of threads")]
    Threads(String),
    #[error("`{0}` is not a number of runs: --repeat takes a whole number of at least 1")]
    Repeat(String),
    #[error("--repeat compares runs without call sites: leave --explain out")]
    RepeatExplains,
    #[error("--soak: {0}")]
    Soak(String),
    #[error("--runner: {0}")]
    Launcher(LauncherError),
    #[error("--archive-file and cargo's options exclude each other: the archive is built already")]
    Built,
    #[error("prune does not accept {0}, because it removes files and runs no tests")]
    Prune(&'static str),
}

impl CommandError for OptionsError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownVariable(unknown) => Some(unknown.hint()),
            _ => None,
        }
    }
}
