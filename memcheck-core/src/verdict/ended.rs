//! How the body ended: as it should, or with `test-failed`, `does-not-fit` or
//! `out-of-memory`.

use super::fit;
use crate::blame;
use crate::finding::{Code, Finding};
use crate::limits::Limits;
use crate::record::{Outcome, Record, Refusal};
use crate::size::both;
use crate::space::Space;

/// `test-failed`, `does-not-fit` or `out-of-memory`, where the body did not end
/// as it should.
pub(super) fn ended(record: &Record, limits: &Limits) -> Option<Finding> {
    let (what, text) = match (&record.outcome, &record.should_panic) {
        (Outcome::Returned, None) => return None,
        (Outcome::Panicked { message }, Some(expected)) if message.contains(expected) => {
            return None;
        }
        (Outcome::Panicked { message }, Some(expected)) => {
            return Some(Finding::new(
                Code::TestFailed,
                format!(
                    "the panic says `{}`, which lacks the expected `{expected}`",
                    gist(message)
                ),
            ));
        }
        (Outcome::Returned, Some(_)) => {
            return Some(Finding::new(
                Code::TestFailed,
                "the test did not panic, and #[should_panic] says that it should",
            ));
        }
        (Outcome::Failed { error }, _) => ("returned an error", gist(error)),
        (Outcome::Panicked { message }, None) => ("panicked", gist(message)),
    };
    let ended = format!("the body {what}: {text}");
    let refused = refusal(record, text);
    if let Some(finding) = refused.and_then(|found| fit::refused(record, limits, found, &ended)) {
        return Some(finding);
    }
    let finding = match refused {
        Some((space, refusal)) => Finding {
            space: Some(space),
            figure: Some(refusal.live + refusal.requested),
            sites: blame::at_refusal(record, space),
            ..Finding::new(
                Code::OutOfMemory,
                format!(
                    "{space} had no room for {} more beside {} live; {ended}",
                    both(refusal.requested),
                    both(refusal.live),
                ),
            )
        }
        .hint("a smaller batch or a shorter sequence, or a larger card: `--device sim:CARD`"),
        None => Finding::new(Code::TestFailed, ended),
    };
    Some(finding)
}

/// The refused allocation that ended the body with `text`. One that it lived
/// with did not: a search for the largest batch goes on to allocate less.
fn refusal(record: &Record, text: &str) -> Option<(Space, Refusal)> {
    let says_so = says_out_of_memory(text);
    record
        .spaces
        .iter()
        .filter_map(|(space, measured)| Some((*space, measured.refused?)))
        .find(|(_, refusal)| refusal.last || says_so)
}

/// Whether a text is that of an error for want of memory, as the driver, cuBLAS
/// and people word it.
pub fn says_out_of_memory(text: &str) -> bool {
    // Not a function of that name, through which it came.
    let text = gist(text).to_lowercase().replace(['_', '-'], " ");
    ["out of memory", "alloc failed"].iter().any(|words| text.contains(words))
}

/// The text of an error without its backtrace: candle's and anyhow's `Debug`
/// append one where `RUST_BACKTRACE` is set. It stands in the test's output.
pub fn gist(text: &str) -> &str {
    let end =
        ["\n\nStack backtrace:", "\n   0: "].iter().filter_map(|start| text.find(start)).min();
    text[..end.unwrap_or(text.len())].trim_end()
}
