//! A key-value cache that continues from one request to the next.

use super::{RemedyAt, Suspect, rate, rule};
use crate::growth::survivors::Pattern;
use crate::size::both;

rule!(
    "cache-never-cleared",
    "a cache is not cleared between requests",
    "clear the cache before each request (`clear_kv_cache`, or a new `Cache`)",
    |suspect, _| match suspect.reading.pattern {
        Pattern::Enlarged => appends_several_positions(suspect),
        _ => suspect.grows() && suspect.stack.calls("candle_nn::kv_cache::"),
    },
    |suspects, _| format!(
        "caches of finished requests are still live or still grow: {} more per iteration",
        both(rate(suspects))
    );
    at_lines(RemedyAt::Allocating(|at| format!(
        "clear the cache that is extended at {at} before each request (`clear_kv_cache`, or a new `Cache`)"
    )))
);

/// Such an iteration is a request and not a token.
fn appends_several_positions(suspect: &Suspect<'_>) -> bool {
    let live = suspect.survivors.group.live.last().copied().unwrap_or(0);
    live > 0 && (suspect.calls > live || adds_several_positions(suspect, live))
}

/// True if an iteration adds more than one position to each of `live` buffers. The dimension of
/// positions is the one that varies, because any other can have a length for which the bytes fit too.
fn adds_several_positions(suspect: &Suspect<'_>, live: u64) -> bool {
    let length = || suspect.survivors.tensors.first()?.shape.get(suspect.dimension?).copied();
    let position = || {
        let bytes = suspect.survivors.group.live_bytes.last()? / live;
        bytes.checked_div(length()?)
    };
    position().is_some_and(|position| {
        position > 0 && suspect.reading.bytes_per_iteration / live > position
    })
}
