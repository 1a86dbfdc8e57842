//! The output of a command that a signal ended before it had any results.

use super::{JsonLines, json, reports, style};
use crate::invocation::options::Options;
use crate::invocation::values::Format;
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::error::Failure;
use crate::system::printing::{Stdout, eprint_line};
use crate::system::process::INTERRUPTED;

/// The caller ends the JSON stream.
pub(crate) fn interrupted() -> Failure {
    Failure::Internal(anyhow::anyhow!("interrupted"))
}

/// For commands that must end their stream themselves.
pub(crate) fn stopped(options: &Options) -> u8 {
    eprint_line!("{}", style::warning("interrupted"));
    let tally = Tally { interrupted: true, ..Tally::default() };
    reports::without_tests(&options.reporting.reports, &tally, INTERRUPTED);
    if options.reporting.format == Format::Json {
        json::close();
        JsonLines::new(Stdout).finished(&tally, INTERRUPTED);
    }
    INTERRUPTED
}
