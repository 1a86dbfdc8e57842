//! Failures that end the command. An expected failure has an exit code and a hint of its own. All
//! others are bugs.

use memcheck_core::wire::exit;
use serde::{Deserialize, Serialize};

pub(crate) trait CommandError: std::error::Error + Send + Sync + 'static {
    /// One of [`memcheck_core::wire::exit::ALL`].
    fn exit_code(&self) -> u8;

    fn hint(&self) -> Option<String> {
        None
    }
}

#[derive(Debug)]
pub(crate) enum Failure {
    Expected(Box<dyn CommandError>),
    /// A bug, or a file of the tool itself that could not be used.
    Internal(anyhow::Error),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Expected(error) => error.exit_code(),
            Self::Internal(_) => exit::INTERNAL,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::Expected(error) => error.to_string(),
            Self::Internal(error) => format!("{error:#}"),
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Expected(error) => error.hint(),
            Self::Internal(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reported {
    pub(crate) exit_code: u8,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl From<&Failure> for Reported {
    fn from(failure: &Failure) -> Self {
        let (exit_code, message) = (failure.exit_code(), failure.message());
        Self { exit_code, message, hint: failure.hint() }
    }
}

impl<E: CommandError> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Expected(Box::new(error))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}
