//! A key-value cache that continues from one request to the next.

use super::{Suspect, rate, rule};
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
    )
);

/// Such an iteration is a request and not a token.
fn appends_several_positions(suspect: &Suspect<'_>) -> bool {
    let live = suspect.survivors.group.live.last().copied().unwrap_or(0);
    live > 0 && (suspect.calls > live || positions(suspect, live).is_some_and(|number| number > 1))
}

/// Positions added to each of `live` buffers: the least by which a dimension can have grown.
fn positions(suspect: &Suspect<'_>, live: u64) -> Option<u64> {
    let tensor = suspect.survivors.tensors.first()?;
    let bytes = suspect.survivors.group.live_bytes.last()? / live;
    let added = suspect.reading.bytes_per_iteration / live;
    let by_dimension = tensor.shape.iter().filter_map(|&length| {
        let position = bytes.checked_div(length)?;
        (position > 0 && added.is_multiple_of(position)).then(|| added / position)
    });
    by_dimension.filter(|&number| number > 0).min()
}
