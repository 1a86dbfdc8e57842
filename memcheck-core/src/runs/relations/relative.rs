//! `peak-limit` against the peak of another test.

use crate::bound::Relative;
use crate::judgement::baseline::Figures;
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::measurement::record::Record;
use crate::size::both;
use crate::space::Space;

const PEAK: &str = "peak_allocated";

/// The findings about a peak of `record` above its share of the peak of `partner`. `figures` are
/// those of the partner. On each GPU the peak is compared with that of the partner on the same GPU,
/// or with that in the partner's first space if the partner did not use this GPU.
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
                        "the peak in {space} is {}, at most {} allowed: {limit}, and `{partner}` \
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
