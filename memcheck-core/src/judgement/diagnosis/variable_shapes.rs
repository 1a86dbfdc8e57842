//! Memory that changes from iteration to iteration, because the shapes of the inputs change.

use super::rule;
use crate::growth::survivors::Pattern;

rule!(
    "variable-shapes",
    "memory varies with the shapes of the inputs: this is not a leak",
    "pad or bucket the inputs if the peak matters; nothing needs to be freed",
    |suspect, _| {
        suspect.survivors.tensors.len() > 1
            && matches!(suspect.reading.pattern, Pattern::LastKept | Pattern::Replaced)
    },
    |suspects, _| {
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
