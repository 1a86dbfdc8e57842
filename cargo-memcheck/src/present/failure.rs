//! A failure that ends the command: `error:` and `hint:` on stderr.

use super::style;
use crate::error::{Failure, Reported};
use crate::talk::say;

/// Says why the command ends.
pub(crate) fn failure(failure: &Failure) {
    reported(&failure.into());
    if let Failure::Internal(_) = failure {
        say!("{} this may be a bug of cargo-memcheck", style::dim("note:"));
    }
}

/// The same of a failure that was kept.
pub(crate) fn reported(failure: &Reported) {
    say!("{} {}", style::error("error:"), failure.message);
    if let Some(hint) = &failure.hint {
        say!("{} {hint}", style::hint("hint:"));
    }
}
