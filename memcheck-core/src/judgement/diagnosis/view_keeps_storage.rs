//! A small view that keeps the whole storage of its tensor.

use super::rule;
use crate::size::both;

rule!(
    "view-keeps-storage",
    "a view keeps the whole storage of its tensor",
    "copy the view with `force_contiguous()`: `contiguous()` returns the view itself if it is \
     already contiguous",
    |suspect, _| suspect.mostly(suspect.survivors.held.views),
    |suspects, _| {
        let view = suspects.iter().map(|suspect| suspect.survivors.held.view_bytes).max();
        let whole = suspects
            .iter()
            .filter_map(|suspect| {
                let group = &suspect.survivors.group;
                group.bytes().checked_div(group.count())
            })
            .max();
        format!(
            "views of at most {} hold blocks of {}",
            both(view.unwrap_or(0)),
            both(whole.unwrap_or(0))
        )
    }
);
