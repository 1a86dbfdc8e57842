//! A key-value cache that goes on from one request to the next.

use super::{rate, rule};
use crate::size::both;
use crate::survivors::Pattern;

rule!(
    "cache-never-cleared",
    "a cache is not cleared between requests",
    "clear the cache before each request (`clear_kv_cache`, or a new `Cache`)",
    |suspect, _| {
        let live = suspect.survivors.group.live.last().copied().unwrap_or(0);
        suspect.reading.pattern == Pattern::Enlarged && live > 0 && suspect.calls > live
    },
    |suspects, _| format!(
        "buffers are replaced by larger ones several times an iteration, and never start anew: \
         {} an iteration",
        both(rate(suspects))
    )
);
