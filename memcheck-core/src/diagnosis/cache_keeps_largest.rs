//! A buffer that stays as large as the largest input ever seen.

use super::rule;
use crate::size::both;
use crate::survivors::Pattern;

rule!(
    "cache-keeps-largest",
    "a buffer stays as large as the largest input seen",
    "drop it after a large input, or bound the inputs: it does not grow by itself",
    |suspect, _| suspect.reading.pattern == Pattern::Ratchet,
    |suspects, _| {
        let now: u64 =
            suspects.iter().filter_map(|suspect| suspect.survivors.group.live_bytes.last()).sum();
        format!("it was replaced by larger ones, and holds {} now", both(now))
    }
);
