//! The baseline of the laws of a test. It is a snapshot in the same folder as those of its cases and has insta's
//! format, so that `review` and `cargo insta` can show it.

use std::path::Path;

use memcheck_core::judgement::baseline::{Laws, Parts, differing_facts};
use memcheck_core::measurement::record::Facts;

/// `None` if the laws cannot be read, or if their facts differ from `now`.
pub(super) fn read(path: &Path, now: &Facts) -> Option<Laws> {
    let text = std::fs::read_to_string(path).ok()?;
    let parts = Parts::of(&text).ok()?;
    let facts: Facts = serde_json::from_str(parts.info.as_deref()?).ok()?;
    let laws = Laws::from_yaml(parts.body).ok()?;
    differing_facts(&facts, now).is_empty().then_some(laws)
}
