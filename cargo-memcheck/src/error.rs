//! Failures that end the command: expected ones with their exit code and what
//! to do about them, and bugs, which are neither.

use memcheck_core::exit;
use serde::{Deserialize, Serialize};

/// An error that a user can meet without a bug: each module's own enum.
pub(crate) trait Expected: std::error::Error + Send + Sync + 'static {
    /// The exit code, one of [`memcheck_core::exit::ALL`].
    fn exit_code(&self) -> u8;

    /// What to do about it.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// Why the command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Said by one of the modules.
    Expected(Box<dyn Expected>),
    /// A bug, or a file of the tool's own that could not be used.
    Internal(anyhow::Error),
}

impl Failure {
    /// The exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Expected(error) => error.exit_code(),
            Self::Internal(_) => exit::INTERNAL,
        }
    }

    /// The message, with its causes.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Expected(error) => error.to_string(),
            Self::Internal(error) => format!("{error:#}"),
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Expected(error) => error.hint(),
            Self::Internal(_) => None,
        }
    }
}

/// The part of a failure that outlives it, in the summary and in the results of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reported {
    /// The exit code.
    pub(crate) exit_code: u8,
    /// The message, with its causes.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl From<&Failure> for Reported {
    fn from(failure: &Failure) -> Self {
        let (exit_code, message) = (failure.exit_code(), failure.message());
        Self { exit_code, message, hint: failure.hint() }
    }
}

impl<E: Expected> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Expected(Box::new(error))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}
