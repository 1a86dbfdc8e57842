//! The baseline that keeps the laws of a test: a snapshot beside those of its
//! cases, laid out as insta lays them out, so that `review` and `cargo insta` show
//! it as any other.

use std::path::Path;

use memcheck_core::baseline::{Laws, Parts, differing_facts};
use memcheck_core::record::Facts;

/// The accepted laws at `path`; `None` where there are none that can be read and
/// were found under the same conditions.
pub(super) fn read(path: &Path, now: &Facts) -> Option<Laws> {
    let text = std::fs::read_to_string(path).ok()?;
    let parts = Parts::of(&text).ok()?;
    let facts: Facts = serde_json::from_str(parts.info.as_deref()?).ok()?;
    let laws = Laws::from_yaml(parts.body).ok()?;
    differing_facts(&facts, now).is_empty().then_some(laws)
}
