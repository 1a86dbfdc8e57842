//! Memory that changes from iteration to iteration, because the shapes of the inputs change.

use super::rule;
use crate::growth::survivors::{Group, Pattern};
use crate::size::both;

rule!(
    "variable-shapes",
    "memory varies with the shapes of the inputs: this is not a leak",
    "pad or bucket the inputs if the peak matters; nothing needs to be freed",
    |suspect, _| {
        let survivors = suspect.survivors;
        // Where one tensor is left, it is that of the last input only.
        let has_several = survivors.tensors.len() > 1
            || (survivors.tensors.len() == 1 && is_of_several_sizes(&survivors.group));
        has_several && matches!(suspect.reading.pattern, Pattern::LastKept | Pattern::Replaced)
    },
    |suspects, _| {
        if let [suspect] = suspects
            && let [tensor] = suspect.survivors.tensors.as_slice()
        {
            let (least, most) = range(&suspect.survivors.group);
            return format!(
                "the call site keeps {} to {}, and {tensor} at the end",
                both(least),
                both(most)
            );
        }
        let shapes: Vec<String> = suspects
            .iter()
            .flat_map(|suspect| &suspect.survivors.tensors)
            .take(3)
            .map(ToString::to_string)
            .collect();
        format!("the same call site allocates tensors of several shapes: {}", shapes.join(", "))
    };
    remark()
);

fn is_of_several_sizes(group: &Group) -> bool {
    let (least, most) = range(group);
    group.block.is_none() && least < most
}

/// The least and the most bytes that were live at the end of an iteration, without 0.
fn range(group: &Group) -> (u64, u64) {
    let live = || group.live_bytes.iter().copied().filter(|&bytes| bytes > 0);
    (live().min().unwrap_or(0), live().max().unwrap_or(0))
}
