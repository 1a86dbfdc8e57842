//! `kept-limit`: blocks of earlier iterations hold more bytes in all than `max_kept` allows.

use crate::growth::survivors::Pattern;
use crate::judgement::blame;
use crate::judgement::diagnosis::Cause;
use crate::judgement::finding::{Code, Finding};
use crate::limits::Limits;
use crate::measurement::record::{Record, SpaceRecord};
use crate::size::both;
use crate::space::Space;

pub(super) fn judge(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let limit = limits.max_kept.value?;
    let kept = measured.kept.filter(|&kept| kept > limit)?;
    let over = |space| {
        let kept = record.spaces.get(&space).and_then(|measured| measured.kept);
        kept.filter(|&kept| kept > limit).unwrap_or(0)
    };
    if super::is_overhead(space, over) {
        return None;
    }
    let iterations = record.followed.as_ref().map_or(record.iterations, |it| it.iterations);
    Some(Finding {
        space: Some(space),
        figure: Some(kept),
        limit: Some(limit),
        sites: blame::kept(record, space),
        ..Finding::new(
            Code::KeptLimit,
            format!(
                "blocks of earlier iterations hold up to {} in {space} (limit {} of `max_kept`), \
                 in {iterations} iterations",
                both(kept),
                both(limit)
            ),
        )
    })
}

/// The causes that a cache with a bound can have: its tensors stay, and no one knows their owner.
const OF_A_CACHE: [&str; 3] = ["tensor-kept", "buffers-kept", "cache-by-shape"];

/// Adds the option for a cache to each leak that could be one: its blocks stay one by one, and no
/// cause shows another owner.
pub(super) fn name_option(findings: &mut [Finding], limits: &Limits) {
    if limits.max_kept.value.is_some() {
        return;
    }
    let leaks = findings.iter_mut().filter(|finding| finding.code == Code::Leak);
    for leak in leaks.filter(|leak| could_be_cache(leak)) {
        leak.hint.get_or_insert_with(|| {
            "if it is a cache that has not filled yet, state its size with `max_kept = \"8 MiB\"`; if \
             its entries expire, a longer time with `min_time = \"2s\"`"
                .to_owned()
        });
    }
}

fn could_be_cache(leak: &Finding) -> bool {
    let fills =
        |pattern| matches!(pattern, Some(Pattern::Steady | Pattern::Periodic | Pattern::Irregular));
    let is_known = |cause: &Cause| !OF_A_CACHE.contains(&cause.code.as_str());
    leak.space.is_some_and(|space| !space.has_own_limit())
        && !leak.cause.as_ref().is_some_and(is_known)
        && leak.sites.iter().any(|site| fills(site.pattern))
}
