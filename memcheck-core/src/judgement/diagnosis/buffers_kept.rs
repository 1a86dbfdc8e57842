//! Memory that no tensor holds.

use super::{RemedyAt, count, rule};
use crate::size::counted;

rule!(
    "buffers-kept",
    "buffers of each iteration are kept",
    "find the owner: a `Vec` that grows, a map that is never cleared, a cycle of `Arc`s, a channel \
     that is not read, a task or thread that does not end, `mem::forget` or `Box::leak`",
    |_, _| true,
    |suspects, evidence| format!(
        "{} belong to a tensor{}",
        counted(count(suspects), "surviving block does not", "surviving blocks do not"),
        evidence.owners.question(suspects)
    );
    at_lines(RemedyAt::Keeping(|at| format!(
        "remove entries from the list at {at}, or bound its length"
    )))
);
