//! The memory that iterations keep up to a limit (`max_kept`): its call sites, and a note.

use std::cmp::Reverse;

use super::{alike, holder_sites, surviving};
use crate::judgement::diagnosis;
use crate::judgement::finding::Site;
use crate::measurement::attribution::{Holder, HolderKind};
use crate::measurement::record::Record;
use crate::size::both;
use crate::space::Space;

/// The sites that held memory of earlier iterations at the peak of the longest run or, if there was
/// none at that moment, those whose blocks survived; the largest first.
pub fn kept(record: &Record, space: Space) -> Vec<Site> {
    let Some(attribution) = record.longer.as_ref().or(record.attribution.as_ref()) else {
        return Vec::new();
    };
    let is_kept =
        |holder: &&Holder| !matches!(holder.kind, HolderKind::Setup | HolderKind::Activations);
    let holders = attribution.peaks.get(&space).map(|peak| peak.holders.as_slice());
    let holders: Vec<Holder> =
        holders.unwrap_or_default().iter().filter(is_kept).cloned().collect();
    if !holders.is_empty() {
        return holder_sites(attribution, space, &holders);
    }
    let suspects = diagnosis::suspects(attribution, space);
    let mut sites: Vec<Site> = alike(&suspects).iter().map(surviving).collect();
    sites.sort_by_key(|site| Reverse(site.bytes));
    sites
}

/// Notes how much of its limit the kept memory of a test reached, because growth was not judged.
pub fn note_kept(record: &mut Record) {
    let Some(limit) = record.limits.max_kept.value else { return };
    let iterations = record.followed.as_ref().map_or(record.iterations, |it| it.iterations);
    let figures = record.judged.iter().filter_map(|space| {
        let kept = record.spaces.get(space)?.kept?;
        (kept > 0 && kept <= limit).then_some((*space, kept))
    });
    let notes = figures.map(|(space, kept)| {
        format!(
            "blocks of earlier iterations held up to {} in {space} in {iterations} iterations; up \
             to {} (`max_kept`) growth is not judged",
            both(kept),
            both(limit)
        )
    });
    let notes: Vec<String> = notes.collect();
    record.remarks.extend(notes);
}
