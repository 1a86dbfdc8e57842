//! The tolerance that covers every value that the runs of a test have measured.

use super::baseline::{Figures, tolerance_of};
use crate::measurement::phase;
use crate::measurement::repeats::Range;
use crate::tolerance::Tolerance;

/// A sentence about the figures whose ranges exceed the tolerance of the accepted ones, with the
/// tolerance that covers them; `None` if `tolerance` does.
pub fn propose(accepted: &Figures, ranges: &[Range], tolerance: Tolerance) -> Option<String> {
    let of_baseline = |range: &&Range| {
        let figure = phase::split(&range.metric).map_or(range.metric.as_str(), |(_, it)| it);
        ["peak_allocated", "growth", "allocations"].contains(&figure)
    };
    let outside = ranges.iter().filter(of_baseline).filter_map(|range| {
        let value = *accepted.0.get(&range.space)?.get(&range.metric)?;
        let allowed = tolerance_of(&range.metric, tolerance);
        let covered = allowed.floor(value)..=allowed.ceiling(value);
        let is_covered = covered.contains(&range.least) && covered.contains(&range.greatest);
        (!is_covered).then_some((range, value))
    });
    let outside: Vec<(&Range, u64)> = outside.collect();
    let distance = |(range, value): &(&Range, u64)| {
        range.greatest.saturating_sub(*value).max(value.saturating_sub(range.least))
    };
    let is_count = |(range, _): &&(&Range, u64)| range.is_count();
    let bytes = outside.iter().filter(|it| !is_count(it)).map(distance).max();
    // Bytes do not apply to a count. Rounded up to whole percents of the accepted number.
    let percent = |it: &(&Range, u64)| distance(it).saturating_mul(100).div_ceil(it.1.max(1));
    let percent = outside.iter().filter(is_count).map(percent).max();
    let proposed = match (percent, bytes) {
        (None, None) => return None,
        (Some(percent), None) => format!("{percent}%"),
        (None, Some(bytes)) => format!("{bytes} B"),
        (Some(percent), Some(bytes)) => format!("{percent}% | {bytes} B"),
    };
    let figures: Vec<String> = outside.iter().map(|(range, _)| range.text()).collect();
    Some(format!(
        "{}: set `tolerance = \"{proposed}\"`, or make the test deterministic",
        figures.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::measurement::record::example::GPU;
    use crate::measurement::repeats::Repeats;

    fn run(figures: &[(&str, u64)]) -> Figures {
        let by_name = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Figures(BTreeMap::from([(GPU, by_name)]))
    }

    fn proposed(runs: &[&[(&str, u64)]], tolerance: &str) -> Option<String> {
        let runs: Vec<Figures> = runs.iter().map(|figures| run(figures)).collect();
        let ranges = Repeats { asked: None, runs: runs.clone() }.ranges();
        propose(&runs[0], &ranges, tolerance.parse().unwrap())
    }

    #[test]
    fn the_proposal_covers_every_value() {
        let peaks = |tolerance: &str| {
            let runs: [&[(&str, u64)]; 3] =
                [&[("peak_allocated", 100)], &[("peak_allocated", 104)], &[("peak_allocated", 93)]];
            proposed(&runs, tolerance)
        };
        assert_eq!(
            peaks("0%").as_deref(),
            Some(
                "`peak_allocated` of cuda:0 is 93 B to 104 B in 3 runs: set `tolerance = \"7 B\"`, \
                 or make the test deterministic"
            )
        );
        assert!(peaks("6%").is_some());
        assert_eq!(peaks("7%"), None);
        let counts = proposed(
            &[
                &[("allocations", 200), ("decode/growth", 9)],
                &[("allocations", 203), ("decode/growth", 8)],
            ],
            "0%",
        );
        assert!(counts.unwrap().contains("set `tolerance = \"2% | 1 B\"`"));
    }

    #[test]
    fn a_figure_that_is_the_same_or_not_judged_needs_none() {
        assert_eq!(proposed(&[&[("peak_allocated", 9)], &[("peak_allocated", 9)]], "0%"), None);
        assert_eq!(proposed(&[&[("retained", 9)], &[("retained", 10)]], "0%"), None);
        // Runs with more iterations have no peak to compare.
        assert_eq!(proposed(&[&[("allocated", 9)], &[("allocated", 10)]], "0%"), None);
    }
}
