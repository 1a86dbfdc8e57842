//! The stage of a measurement, which the message of a failure names.

/// The stage that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureStage {
    Loading,
    Prompt,
    /// The token with this number, counted from 1.
    Token(usize),
    Training,
}

impl std::fmt::Display for FailureStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Loading => f.write_str("loading the weights"),
            Self::Prompt => f.write_str("reading the prompt"),
            Self::Token(number) => write!(f, "generating token {number}"),
            Self::Training => f.write_str("training"),
        }
    }
}
