//! Memory that no tensor holds.

use super::{count, rule};
use crate::size::counted;

rule!(
    "buffers-kept",
    "buffers of each iteration are kept",
    "find the owner: a `Vec` that grows, a map that is never cleared, or a cycle of `Arc`s",
    |_, _| true,
    |suspects, _| format!(
        "{} belong to a tensor",
        counted(count(suspects), "surviving block does not", "surviving blocks do not")
    )
);
