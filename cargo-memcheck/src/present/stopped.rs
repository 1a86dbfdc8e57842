//! What a signal has ended before anything could be told of it.

use super::{JsonLines, style};
use crate::cli::FormatFlag;
use crate::error::Failure;
use crate::options::Options;
use crate::presenter::Presenter;
use crate::process::INTERRUPTED;
use crate::talk::say;
use crate::tally::Tally;

/// Why a command ends whose stream is closed for it, once a signal has come.
pub(crate) fn interrupted() -> Failure {
    Failure::Internal(anyhow::anyhow!("interrupted"))
}

/// A signal came before the first test: closes the stream of a command that does so itself.
pub(crate) fn stopped(options: &Options) -> u8 {
    say!("{}", style::warning("interrupted"));
    if options.telling.format == FormatFlag::Json {
        let tally = Tally { interrupted: true, ..Tally::default() };
        JsonLines::new(std::io::stdout()).finished(&tally, INTERRUPTED);
    }
    INTERRUPTED
}
