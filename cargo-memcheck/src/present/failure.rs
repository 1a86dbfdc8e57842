//! A failure that ends the command: `error:` and `hint:` on stderr.

use super::style;
use crate::error::Failure;
use crate::talk::say;

/// Says why the command ends.
pub(crate) fn failure(failure: &Failure) {
    say!("{} {}", style::error("error:"), failure.message());
    if let Some(hint) = failure.hint() {
        say!("{} {hint}", style::hint("hint:"));
    }
    if let Failure::Internal(_) = failure {
        say!("{} this may be a bug of cargo-memcheck", style::dim("note:"));
    }
}
