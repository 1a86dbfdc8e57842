//! Colors by meaning. `anstream` removes them if the output is not a terminal.

use anstream::ColorChoice;
use memcheck_core::judgement::verdict::Status;
use owo_colors::{OwoColorize, Style};

use crate::invocation::values::Color;

pub(crate) fn choose(color: Color) {
    match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

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

pub(crate) fn error(text: &str) -> String {
    text.red().bold().to_string()
}

pub(crate) fn warning(text: &str) -> String {
    text.yellow().bold().to_string()
}

pub(crate) fn hint(text: &str) -> String {
    text.cyan().to_string()
}

pub(crate) fn dim(text: &str) -> String {
    text.dimmed().to_string()
}

pub(crate) fn strong(text: &str) -> String {
    text.bold().to_string()
}
