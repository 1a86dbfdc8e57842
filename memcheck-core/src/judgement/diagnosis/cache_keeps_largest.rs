//! A buffer that stays as large as the largest input ever seen.

use super::{Evidence, Leftover, RemedyAt, rule};
use crate::growth::survivors::Pattern;
use crate::size::both;

rule!(
    "cache-keeps-largest",
    "a buffer stays as large as the largest input seen",
    "drop the buffer after a large input, or bound the inputs: it does not grow by itself",
    |suspect, _| suspect.reading.pattern == Pattern::Ratchet,
    |suspects, _| {
        let now: u64 =
            suspects.iter().filter_map(|suspect| suspect.survivors.group.live_bytes.last()).sum();
        format!("the buffer was replaced by larger ones and now holds {}", both(now))
    };
    remark(), with_retained(retained),
    at_lines(RemedyAt::Allocating(|at| format!(
        "drop the buffer of {at} after a large input, or bound the inputs: it does not grow by itself"
    )))
);

/// Also fits the workspace that candle's quantized products keep for a device.
fn retained(leftover: &Leftover<'_>, _: &Evidence<'_>) -> Option<String> {
    let Leftover { holder, stack, calls, bytes, .. } = *leftover;
    if holder.count == 1 && calls > 1 && holder.bytes.saturating_mul(calls) > bytes {
        return Some(format!(
            "one block of {} is left of the {calls} that the same call site allocated, {} on average",
            both(holder.bytes),
            both(bytes / calls)
        ));
    }
    stack.is_workspace().then(|| {
        format!("candle keeps a workspace of {} until the device is dropped", both(holder.bytes))
    })
}
