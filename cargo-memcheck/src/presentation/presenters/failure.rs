//! Prints a failure that ends the command: `error:` and `hint:` on stderr.

use super::style;
use crate::system::error::{Failure, Reported};
use crate::system::printing::eprint_line;

pub(crate) fn failure(failure: &Failure) {
    reported(&failure.into());
    if let Failure::Internal(_) = failure {
        eprint_line!("{} this may be a bug of cargo-memcheck", style::dim("note:"));
    }
}

pub(crate) fn reported(failure: &Reported) {
    // A name in a message must not begin a line that looks like one of ours.
    let indented = |text: &str| text.replace('\n', "\n  ");
    eprint_line!("{} {}", style::error("error:"), indented(&failure.message));
    if let Some(hint) = &failure.hint {
        eprint_line!("{} {}", style::hint("hint:"), indented(hint));
    }
}
