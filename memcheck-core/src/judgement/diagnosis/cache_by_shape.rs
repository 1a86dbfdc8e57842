//! A library's cache that keeps one entry for each input shape.

use super::{Suspect, rule};
use crate::measurement::stack::Frame;

const MIN_ENTRIES: usize = 3;

rule!(
    "cache-by-shape",
    "one entry is kept for each distinct input shape",
    "pad or bucket the inputs so that there are few shapes, or clear the library's cache",
    |suspect, _| {
        let shapes = suspect.survivors.tensors.len();
        shapes >= MIN_ENTRIES
            && shapes as u64 >= suspect.survivors.group.count()
            && suspect.stack.dependency().is_some()
    },
    |suspects, _| {
        let line = suspects.first().and_then(|suspect| suspect.stack.dependency());
        format!(
            "{} keeps one tensor for each of {} shapes, such as {}",
            line.map(Frame::shown).unwrap_or_default(),
            suspects.iter().map(|suspect| suspect.survivors.tensors.len()).sum::<usize>(),
            first_tensors(suspects)
        )
    }
);

fn first_tensors(suspects: &[&Suspect<'_>]) -> String {
    let tensors = suspects.iter().flat_map(|suspect| &suspect.survivors.tensors);
    tensors.take(2).map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
