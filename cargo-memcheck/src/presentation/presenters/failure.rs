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
    eprint_line!("{} {}", style::error("error:"), failure.message);
    if let Some(hint) = &failure.hint {
        eprint_line!("{} {hint}", style::hint("hint:"));
    }
}
