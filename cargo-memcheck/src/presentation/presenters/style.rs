//! Colors by meaning, as marks that the writer of the terminal replaces. `anstream` removes the
//! colors if the output is not a terminal.

use anstream::ColorChoice;
use memcheck_core::judgement::verdict::Status;

use crate::invocation::values::Color;
use crate::system::escape::styled;

pub(crate) fn choose(color: Color) {
    match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

pub(crate) fn status(status: Status) -> String {
    let (word, code) = match status {
        Status::Passed => ("PASS", "1;32"),
        Status::NeedsReview => ("REVIEW", "1;33"),
        Status::Failed => ("FAIL", "1;31"),
        Status::NotMeasured => ("NOT MEASURED", "1;31"),
        Status::Ignored => ("IGNORED", "33"),
    };
    styled(code, &format!("{word:>12}"))
}

pub(crate) fn error(text: &str) -> String {
    styled("1;31", text)
}

pub(crate) fn warning(text: &str) -> String {
    styled("1;33", text)
}

pub(crate) fn hint(text: &str) -> String {
    styled("36", text)
}

/// A line of the program.
pub(crate) fn place(text: &str) -> String {
    styled("35", text)
}

/// A number of blocks or of bytes.
pub(crate) fn amount(text: &str) -> String {
    styled("33", text)
}

/// A figure that improved.
pub(crate) fn good(text: &str) -> String {
    styled("32", text)
}

pub(crate) fn dim(text: &str) -> String {
    styled("2", text)
}

pub(crate) fn strong(text: &str) -> String {
    styled("1", text)
}
