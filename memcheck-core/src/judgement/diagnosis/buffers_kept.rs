//! Memory that no tensor holds.

use super::{count, rule};

rule!(
    "buffers-kept",
    "buffers of each iteration are kept",
    "find who holds them: a Vec that is pushed to, a map that is never cleared, a cycle of `Arc`s",
    |_, _| true,
    |suspects, _| format!("{} blocks survive that no tensor holds", count(suspects))
);
