//! What a signal has ended before anything could be told of it.

use super::{JsonLines, style};
use crate::cli::FormatFlag;
use crate::options::Options;
use crate::presenter::Presenter;
use crate::process::INTERRUPTED;
use crate::talk::say;
use crate::tally::Tally;

/// A signal came before the first test.
pub(crate) fn stopped(options: &Options) -> u8 {
    say!("{}", style::warning("interrupted"));
    if options.telling.format == FormatFlag::Json {
        let tally = Tally { interrupted: true, ..Tally::default() };
        JsonLines::new(std::io::stdout()).finished(&tally, INTERRUPTED);
    }
    INTERRUPTED
}
