//! Colours, by meaning. `anstream` takes them out where nobody sees them.

use anstream::ColorChoice;
use memcheck_core::protocol::Status;
use owo_colors::{OwoColorize, Style};

use crate::cli::ColorFlag;

/// Sets once whether colours are printed.
pub(crate) fn choose(color: ColorFlag) {
    match color {
        ColorFlag::Auto => ColorChoice::Auto,
        ColorFlag::Always => ColorChoice::Always,
        ColorFlag::Never => ColorChoice::Never,
    }
    .write_global();
}

/// The word for a status, padded to a column and coloured.
pub(crate) fn status(status: Status) -> String {
    let (word, style) = match status {
        Status::Passed => ("PASS", Style::new().green().bold()),
        Status::NeedsReview => ("REVIEW", Style::new().yellow().bold()),
        Status::Failed => ("FAIL", Style::new().red().bold()),
        Status::NotMeasured => ("NOT MEASURED", Style::new().red().bold()),
        Status::Ignored => ("IGNORED", Style::new().yellow()),
    };
    format!("{word:>12}").style(style).to_string()
}

/// What went wrong.
pub(crate) fn error(text: &str) -> String {
    text.red().bold().to_string()
}

/// What may be wrong.
pub(crate) fn warning(text: &str) -> String {
    text.yellow().bold().to_string()
}

/// What to do.
pub(crate) fn hint(text: &str) -> String {
    text.cyan().to_string()
}

/// What is beside the point.
pub(crate) fn dim(text: &str) -> String {
    text.dimmed().to_string()
}

/// What is to stand out.
pub(crate) fn strong(text: &str) -> String {
    text.bold().to_string()
}
