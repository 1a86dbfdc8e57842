//! A cache that grows with every position.

use super::{RemedyAt, rate, rule};
use crate::growth::survivors::Pattern;
use crate::size::both;

rule!(
    "cache-grows",
    "a cache grows with every position",
    "bound the cache (a window, a maximum length), or clear it after the sequence",
    |suspect, _| suspect.reading.pattern == Pattern::Enlarged,
    |suspects, _| match suspects {
        [suspect] if suspect.reading.bytes > 0 => format!(
            "a buffer is replaced by a larger one in {}: {} more each time",
            suspect.reading.every(),
            both(suspect.reading.bytes)
        ),
        suspects => format!(
            "buffers are replaced by larger ones: {} more per iteration",
            both(rate(suspects))
        ),
    };
    at_lines(RemedyAt::Allocating(|at| format!(
        "bound the cache that is extended at {at} (a window, a maximum length), or clear it after the sequence"
    )))
);
