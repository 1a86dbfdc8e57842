//! From survivors and holders to the sites of a finding: the line of the
//! program first, the operation and its tensor, the scope.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::attribution::{Attribution, Holder, Kind, Place};
use crate::diagnosis::{Evidence, Suspect};
use crate::finding::Site;
use crate::record::Record;
use crate::space::Space;
use crate::stack::{Frame, Stack};
use crate::survivors::{Group, Reading};

/// What grows, the fastest first: places, and blocks of one size that no place
/// accounts for, each followed by the places that hold some of them.
pub fn growing(evidence: &Evidence<'_>) -> Vec<Site> {
    let places = evidence.growing().map(|suspect| vec![surviving(suspect)]);
    let sizes = evidence.unplaced.iter().map(|group| {
        let holding = evidence.holding(group.block).map(surviving);
        std::iter::once(of_size(group)).chain(holding).collect()
    });
    let mut sites: Vec<Vec<Site>> = places.chain(sizes).collect();
    sites.sort_by_key(|sites| Reverse(sites[0].bytes_per_iteration));
    sites.into_iter().flatten().collect()
}

/// The site of survivors, whether they grow or not.
pub fn surviving(suspect: &Suspect<'_>) -> Site {
    let survivors = suspect.survivors;
    Site {
        tensor: survivors.tensors.first().map(ToString::to_string),
        ..of_group(&survivors.group, suspect.reading, site(suspect.stack, &survivors.scope))
    }
}

fn of_size(group: &Group) -> Site {
    of_group(group, group.read(), Site::default())
}

fn of_group(group: &Group, reading: Reading, site: Site) -> Site {
    Site {
        block: group.block,
        bytes: group.bytes(),
        count: group.count(),
        bytes_per_iteration: reading.bytes_per_iteration,
        pattern: Some(reading.pattern),
        note: Some(reading.describe()),
        ..site
    }
}

/// A site that is a place and nothing more.
fn site(stack: &Stack, scope: &str) -> Site {
    let user = stack.user();
    Site {
        function: user.map(Frame::path),
        file: user.and_then(|frame| frame.file.clone()),
        line: user.and_then(|frame| frame.line),
        scope: (!scope.is_empty()).then(|| scope.to_owned()),
        operation: stack.operation(),
        stack: stack.frames.clone(),
        ..Site::default()
    }
}

/// Who held the memory of `space` at its peak, the largest first; empty where
/// call stacks were not asked for.
pub fn at_peak(record: &Record, space: Space) -> Vec<Site> {
    let Some(attribution) = &record.attribution else { return Vec::new() };
    let holders = attribution.peaks.get(&space).map(|peak| peak.holders.as_slice());
    held(attribution, space, holders.unwrap_or_default())
}

/// Who held what was still live when the body had returned.
pub fn retained(record: &Record, space: Space) -> Vec<Site> {
    let Some(attribution) = &record.attribution else { return Vec::new() };
    held(attribution, space, &attribution.retained)
}

fn held(attribution: &Attribution, space: Space, holders: &[Holder]) -> Vec<Site> {
    let mut sites: Vec<Site> = holding(attribution, space, holders)
        .map(|(kind, site)| Site { note: Some(kind.name().to_owned()), ..site })
        .collect();
    sites.sort_by_key(|site| Reverse(site.bytes));
    sites
}

/// The sites of these holders in `space`, and what they hold bytes for.
pub fn holding<'a>(
    attribution: &'a Attribution,
    space: Space,
    holders: &'a [Holder],
) -> impl Iterator<Item = (Kind, Site)> + 'a {
    holders
        .iter()
        .filter_map(|holder| Some((holder, attribution.places.get(holder.place)?)))
        .filter(move |(_, place)| place.space == space)
        .map(|(holder, place)| {
            let site = Site {
                tensor: place.tensor.as_ref().map(ToString::to_string),
                bytes: holder.bytes,
                count: holder.count,
                ..site(attribution.stack_of(place), &place.scope)
            };
            (holder.kind, site)
        })
}

/// What a baseline keeps of who held the memory at the peak: a name for every
/// place, without files and lines, and its bytes. Names that several places
/// share are one.
pub fn labels(attribution: &Attribution, space: Space) -> BTreeMap<String, u64> {
    let mut labels: BTreeMap<String, u64> = BTreeMap::new();
    let Some(peak) = attribution.peaks.get(&space) else { return labels };
    for holder in &peak.holders {
        if let Some(place) = attribution.places.get(holder.place) {
            *labels.entry(label(attribution, place)).or_default() += holder.bytes;
        }
    }
    labels
}

/// `softmax [8,12,512,512] f32 in encoder.3.attn`.
pub fn label(attribution: &Attribution, place: &Place) -> String {
    let stack = attribution.stack_of(place);
    let mut label = match (&place.operation, stack.frames.first()) {
        (Some(operation), _) => operation.clone(),
        (None, Some(frame)) => frame.short(),
        (None, None) => "unknown".to_owned(),
    };
    if let Some(tensor) = &place.tensor {
        label.push_str(&format!(" {tensor}"));
    }
    if !place.scope.is_empty() {
        label.push_str(&format!(" in {}", place.scope));
    }
    label
}
