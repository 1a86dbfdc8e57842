//! `peak-limit` against the peak of another test.

use crate::bound::Relative;
use crate::judgement::baseline::Figures;
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::measurement::record::Record;
use crate::size::both;
use crate::space::Space;

const PEAK: &str = "peak_allocated";

/// Peaks above their share of the partner's `figures`: on each GPU of the peak on the same GPU, or
/// of that in the partner's first space if it did not use this GPU.
pub fn relative(
    record: &Record,
    limit: &Relative,
    partner: &str,
    figures: &Figures,
) -> Vec<Finding> {
    let own = figures.0.values().next();
    let compared = |space: &&Space| matches!(space, Space::Host | Space::Cuda(_));
    let judged = record.judged.iter().filter(compared);
    judged
        .filter_map(|space| record.spaces.get_key_value(space))
        .filter_map(|(&space, measured)| {
            let theirs = figures.0.get(&space).or(own)?.get(PEAK).copied()?;
            let (peak, most) = (measured.metrics.peak_allocated, limit.share_of(theirs));
            (peak > most).then(|| Finding {
                space: Some(space),
                figure: Some(peak),
                limit: Some(most),
                sites: blame::at_peak(record, space),
                ..Finding::new(
                    Code::PeakLimit,
                    format!(
                        "the peak in {space} is {} (limit {}): {limit}, and `{partner}` \
                         peaks at {}",
                        both(peak),
                        both(most),
                        both(theirs)
                    ),
                )
            })
        })
        .collect()
}
