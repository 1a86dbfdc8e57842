//! Converts survivors and holders to the call sites of a finding.

mod alike;
mod events;
mod kept;
mod kept_through;
mod lines;
mod once;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::growth::survivors::{Group, Growth, Pattern, Reading};
use crate::judgement::diagnosis::Evidence;
use crate::judgement::finding::{Site, Via};
use crate::measurement::attribution::{Attribution, Holder, HolderKind};
use crate::measurement::record::Record;
use crate::measurement::stack::{Frame, Stack};
use crate::space::Space;

pub use alike::{SiteGroup, alike};
use alike::{SiteKey, group_by_key};
pub use events::{note_events, notes_of_events_held_once};
pub use kept::{kept, note_kept};
pub use kept_through::kept_through;
pub use once::note_once;

/// Sites that grow, the fastest first; a size without site is followed by the sites that hold it.
pub fn growing(evidence: &Evidence<'_>) -> Vec<Site> {
    let growing = alike(evidence.growing());
    let places = growing.iter().map(|place| vec![of_run(evidence, surviving(place))]);
    let sizes = evidence.sizes().map(|(group, holding)| {
        let holding = alike(holding);
        let size = of_run(evidence, size_site(group));
        std::iter::once(size).chain(holding.iter().map(surviving)).collect()
    });
    let mut sites: Vec<Vec<Site>> = places.chain(sizes).collect();
    sites.sort_by_key(|sites| Reverse(sites[0].bytes_per_iteration));
    sites.into_iter().flatten().collect()
}

/// Sites whose blocks were live at the end, the largest first, for growth that is undecided.
pub fn staying(evidence: &Evidence<'_>) -> Vec<Site> {
    let staying = alike(evidence.suspects.iter());
    let mut sites: Vec<Site> = staying.iter().map(surviving).collect();
    sites.sort_by_key(|site| Reverse(site.bytes));
    sites
}

/// A buffer that is enlarged has another size in the run that decided the growth than in the run
/// that measured the peak, so that its note names the iterations of the run.
fn of_run(evidence: &Evidence<'_>, site: Site) -> Site {
    let is_buffer = matches!(site.pattern, Some(Pattern::Enlarged | Pattern::Amortized));
    match (evidence.measured.growth, &site.note) {
        (Growth::Found { iterations, .. }, Some(note)) if is_buffer && evidence.is_longer => {
            let sizes = if site.count > 1 { "these are their sizes" } else { "this is its size" };
            let note = format!("{note}; {sizes} after {iterations} iterations");
            Site { note: Some(note), ..site }
        }
        _ => site,
    }
}

/// The site of survivors, whether they grow or not.
pub fn surviving(alike: &SiteGroup<'_, '_>) -> Site {
    let first = alike.suspects[0];
    let survivors = first.survivors;
    let place = Site {
        block: survivors.group.block,
        bytes: alike.bytes(),
        count: alike.count(),
        tensor: alike::tensors(survivors),
        ..site(first.stack, &survivors.scope)
    };
    with_reading(place, alike.reading)
}

fn size_site(group: &Group) -> Site {
    let size =
        Site { block: group.block, bytes: group.bytes(), count: group.count(), ..Site::default() };
    with_reading(size, group.reading)
}

fn with_reading(site: Site, reading: Reading) -> Site {
    Site {
        bytes_per_iteration: reading.bytes_per_iteration,
        pattern: Some(reading.pattern),
        note: Some(reading.describe()),
        ..site
    }
}

/// The site of a call stack in a scope, without figures.
pub(super) fn site(stack: &Stack, scope: &str) -> Site {
    Site { stack: stack.frames.clone(), outside: stack.outside, ..line(stack, scope) }
}

/// The same without the frames, which are most of its memory.
fn line(stack: &Stack, scope: &str) -> Site {
    let user = stack.user();
    Site {
        function: user.map(Frame::path),
        file: user.and_then(|frame| frame.file.clone()),
        line: user.and_then(|frame| frame.line),
        via: dependency_line(stack),
        scope: (!scope.is_empty()).then(|| scope.to_owned()),
        operation: stack.operation(),
        ..Site::default()
    }
}

/// The line of the dependency that allocated for the program.
fn dependency_line(stack: &Stack) -> Option<Via> {
    let frame = stack.dependency()?;
    Some(Via { file: frame.short_file()?.to_owned(), line: frame.line?, function: frame.path() })
}

/// The sites that held `space` at its peak, the largest first; empty without call stacks.
pub fn at_peak(record: &Record, space: Space) -> Vec<Site> {
    with_purposes(by_purpose_at_peak(record, space))
}

/// The same sites, each with the purpose of its bytes.
pub(super) fn by_purpose_at_peak(record: &Record, space: Space) -> Vec<(HolderKind, Site)> {
    let Some(attribution) = &record.attribution else { return Vec::new() };
    let holders = attribution.peaks.get(&space).map(|peak| peak.holders.as_slice());
    holding(attribution, space, holders.unwrap_or_default())
}

/// The sites with the purposes of their bytes as notes.
pub(super) fn with_purposes(held: Vec<(HolderKind, Site)>) -> Vec<Site> {
    let with =
        |(kind, site): (HolderKind, Site)| Site { note: Some(kind.name().to_owned()), ..site };
    held.into_iter().map(with).collect()
}

/// The line whose allocation was refused, then the holders at that moment, the largest first.
pub fn at_refusal(record: &Record, space: Space) -> Vec<Site> {
    let Some(attribution) = &record.attribution else { return Vec::new() };
    let Some(refused) = attribution.refused.get(&space) else { return Vec::new() };
    let requested = attribution.stacks.get(refused.stack).map(|stack| Site {
        bytes: refused.requested,
        count: 1,
        note: Some("requested and refused".to_owned()),
        ..site(stack, &refused.scope)
    });
    requested.into_iter().chain(holder_sites(attribution, space, &refused.holders)).collect()
}

/// The sites that allocate in the last iteration, the most frequent first.
pub fn allocating(record: &Record, space: Space) -> Vec<Site> {
    let Some(attribution) = &record.attribution else { return Vec::new() };
    let last = attribution.places.iter().map(|place| place.last).max().unwrap_or(0);
    let places = attribution
        .places
        .iter()
        .filter(|place| place.space == space && place.last == last && last > 0);
    let groups = group_by_key(places, |place| {
        SiteKey::new(attribution.stack_of(place), place.tensor.as_ref(), &place.scope)
    });
    let mut sites: Vec<Site> = groups
        .iter()
        .map(|alike| Site {
            operation: alike[0].operation.clone(),
            tensor: alike[0].tensor.as_ref().map(ToString::to_string),
            bytes: alike.iter().map(|place| place.last_bytes).sum(),
            count: alike.iter().map(|place| place.last_calls).sum(),
            note: Some(format!("allocated in iteration {last}")),
            ..site(attribution.stack_of(alike[0]), &alike[0].scope)
        })
        .collect();
    sites.sort_by_key(|site| Reverse((site.count, site.bytes)));
    sites
}

/// The sites that held memory of `space` when the body had returned.
pub fn retained(record: &Record, space: Space) -> Vec<Site> {
    let Some(attribution) = &record.attribution else { return Vec::new() };
    holder_sites(attribution, space, &attribution.retained)
}

fn holder_sites(attribution: &Attribution, space: Space, holders: &[Holder]) -> Vec<Site> {
    with_purposes(holding(attribution, space, holders))
}

/// The sites of these holders in `space`, each with the purpose of its bytes, the largest first.
pub fn holding(
    attribution: &Attribution,
    space: Space,
    holders: &[Holder],
) -> Vec<(HolderKind, Site)> {
    held((attribution, space), holders, site)
}

/// The same without call stacks.
pub fn holding_lines(
    attribution: &Attribution,
    space: Space,
    holders: &[Holder],
) -> Vec<(HolderKind, Site)> {
    held((attribution, space), holders, line)
}

fn held(
    (attribution, space): (&Attribution, Space),
    holders: &[Holder],
    site: fn(&Stack, &str) -> Site,
) -> Vec<(HolderKind, Site)> {
    let held = holders
        .iter()
        .filter_map(|holder| Some((holder, attribution.places.get(holder.place)?)))
        .filter(|(_, place)| place.space == space);
    let groups = group_by_key(held, |(holder, place)| {
        (
            SiteKey::new(attribution.stack_of(place), place.tensor.as_ref(), &place.scope),
            holder.kind,
        )
    });
    let mut sites: Vec<(HolderKind, Site)> = groups
        .iter()
        .map(|alike| {
            let (holder, place) = alike[0];
            let site = Site {
                operation: place.operation.clone(),
                tensor: place.tensor.as_ref().map(ToString::to_string),
                bytes: alike.iter().map(|(holder, _)| holder.bytes).sum(),
                count: alike.iter().map(|(holder, _)| holder.count).sum(),
                ..site(attribution.stack_of(place), &place.scope)
            };
            (holder.kind, site)
        })
        .collect();
    sites.sort_by_key(|(_, site)| Reverse(site.bytes));
    sites
}

/// Holders at the peak by label without file and line. Equal labels are added up.
pub fn labels(attribution: &Attribution, space: Space) -> BTreeMap<String, u64> {
    let mut labels: BTreeMap<String, u64> = BTreeMap::new();
    let Some(peak) = attribution.peaks.get(&space) else { return labels };
    for (_, site) in holding(attribution, space, &peak.holders) {
        *labels.entry(label(&site)).or_default() += site.bytes;
    }
    labels
}

/// The label of a site: `softmax [8,12,512,512] f32 in encoder.3.attn`.
pub fn label(site: &Site) -> String {
    let innermost = || site.stack.first().map(Frame::short);
    let mut label =
        site.operation.clone().or_else(innermost).unwrap_or_else(|| "unknown".to_owned());
    if let Some(tensor) = &site.tensor {
        label.push_str(&format!(" {tensor}"));
    }
    if let Some(scope) = &site.scope {
        label.push_str(&format!(" in {scope}"));
    }
    label
}
