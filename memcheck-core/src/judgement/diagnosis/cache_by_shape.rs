//! A cache that keeps one entry for each shape, in the program or in a library.

use super::{RemedyAt, Suspect, rule};
use crate::measurement::stack::{Frame, Passage};

const MIN_ENTRIES: usize = 3;

rule!(
    "cache-by-shape",
    "one entry is kept for each distinct input shape",
    "pad or bucket the inputs so that there are few shapes, or clear the cache",
    |suspect, evidence| {
        let shapes = suspect.survivors.tensors.len();
        shapes >= MIN_ENTRIES
            && shapes as u64 >= suspect.survivors.group.count()
            // A list of outputs of growing inputs has as many shapes, but it is not in a map.
            && suspect.allocates_each_type_once
            && evidence.owners.stores(suspect.stack, Passage::Map)
            // A function that counts lengths in a map can keep its tensors in a list.
            && (suspect.stack.through.contains(&Passage::Map)
                || !evidence.owners.can_be_in_list(suspect))
    },
    |suspects, _| {
        let stack = suspects.first().map(|suspect| suspect.stack);
        let line = stack.and_then(|stack| stack.dependency().or_else(|| stack.user()));
        format!(
            "{} keeps one tensor for each of {} shapes, such as {}",
            line.map_or_else(|| "a map".to_owned(), Frame::shown),
            suspects.iter().map(|suspect| suspect.survivors.tensors.len()).sum::<usize>(),
            first_tensors(suspects)
        )
    };
    at_lines(RemedyAt::Allocating(|at| format!(
        "pad or bucket the inputs so that there are few shapes, or clear the cache that keeps the tensors of {at}"
    )))
);

fn first_tensors(suspects: &[&Suspect<'_>]) -> String {
    let tensors = suspects.iter().flat_map(|suspect| &suspect.survivors.tensors);
    tensors.take(2).map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
