//! A small view that keeps the whole storage of its tensor.

use super::{RemedyAt, Suspect, rule};
use crate::size::both;

rule!(
    "view-keeps-storage",
    "a view keeps the whole storage of its tensor",
    "copy the view with `force_contiguous()`: `contiguous()` returns the view itself if it is \
     already contiguous",
    // Copies must save at least half of the memory, or the views are not its cause.
    |suspect, _| {
        let held = &suspect.survivors.held;
        suspect.mostly(held.views) && held.view_bytes <= block(suspect) / 2
    },
    |suspects, _| {
        let view = suspects.iter().map(|suspect| suspect.survivors.held.view_bytes).max();
        let view = view.unwrap_or(0);
        let whole = suspects.iter().map(|suspect| block(suspect)).max().unwrap_or(0);
        format!(
            "views of at most {} hold blocks of {}: a copy would save {} of each",
            both(view),
            both(whole),
            both(whole.saturating_sub(view))
        )
    };
    at_lines(RemedyAt::Allocating(|at| format!(
        "copy the view of the tensor of {at} with `force_contiguous()`: `contiguous()` returns the view itself if it is already contiguous"
    )))
);

/// The size of a block, on average.
fn block(suspect: &Suspect<'_>) -> u64 {
    let group = &suspect.survivors.group;
    group.bytes().checked_div(group.count()).unwrap_or(0)
}
