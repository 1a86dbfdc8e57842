//! `peak-limit` against the peak of another test.

use super::MeasuredRuns;
use crate::bound::Relative;
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::measurement::comparison;
use crate::measurement::figures::Figures;
use crate::measurement::record::Record;
use crate::measurement::repeats::Range;
use crate::size::both;
use crate::space::Space;

const PEAK: &str = "peak_allocated";

/// Peaks above their share of the partner's: on each GPU of the peak on the same GPU, or of that in
/// the partner's first space if it did not use this GPU. If the peaks of several runs differ, every
/// run must exceed the share of every run of the partner; otherwise the test is unstable.
pub fn relative(
    record: &Record,
    limit: &Relative,
    partner: &str,
    runs_of_partner: &MeasuredRuns,
) -> Vec<Finding> {
    let own = comparison::runs(record);
    let compared = |space: &&Space| matches!(space, Space::Host | Space::Cuda(_));
    let judged = record.judged.iter().filter(compared);
    let finding = |&space: &Space| {
        let peak = record.spaces.get(&space)?.metrics.peak_allocated;
        let peaks = Peaks::of(peak, own.iter().filter_map(|run| peak_in(run, space)));
        let theirs = Peaks::of(
            peak_in_or_first(&runs_of_partner.first, space)?,
            runs_of_partner.further.iter().filter_map(|run| peak_in_or_first(run, space)),
        );
        let most = |peak| limit.share_of(peak);
        let code = match () {
            () if peaks.greatest <= most(theirs.least) => return None,
            () if peaks.least > most(theirs.greatest) => Code::PeakLimit,
            () => Code::Unstable,
        };
        let allowed = if theirs.is_stable() {
            format!("limit {}", both(most(theirs.first)))
        } else {
            format!("limit {} to {}", both(most(theirs.least)), both(most(theirs.greatest)))
        };
        let message = format!(
            "the peak in {space} is {} ({allowed}): {limit}, and `{partner}` peaks at {}{}",
            peaks.text(),
            theirs.text(),
            if code == Code::Unstable { "; only some runs exceed the limit" } else { "" }
        );
        Some(Finding {
            space: Some(space),
            figure: Some(if code == Code::Unstable { peaks.greatest } else { peaks.first }),
            limit: Some(most(if code == Code::Unstable { theirs.least } else { theirs.first })),
            sites: blame::at_peak(record, space),
            range: (code == Code::Unstable).then(|| peaks.range(space)).flatten(),
            ..Finding::new(code, message)
        })
    };
    judged.filter_map(finding).collect()
}

fn peak_in(figures: &Figures, space: Space) -> Option<u64> {
    figures.0.get(&space)?.get(PEAK).copied()
}

fn peak_in_or_first(figures: &Figures, space: Space) -> Option<u64> {
    figures.0.get(&space).or(figures.0.values().next())?.get(PEAK).copied()
}

/// The peaks of several runs of a test in one space.
struct Peaks {
    first: u64,
    least: u64,
    greatest: u64,
    all: Vec<u64>,
}

impl Peaks {
    /// `all` can lack the first run, and runs whose peak depends on further iterations.
    fn of(first: u64, all: impl Iterator<Item = u64>) -> Self {
        let all: Vec<u64> = all.collect();
        let (least, greatest) =
            all.iter().fold((first, first), |(low, high), &peak| (low.min(peak), high.max(peak)));
        Self { first, least, greatest, all }
    }

    fn is_stable(&self) -> bool {
        self.least == self.greatest
    }

    fn text(&self) -> String {
        match self.is_stable() {
            true => both(self.first),
            false => format!("{} to {} in several runs", both(self.least), both(self.greatest)),
        }
    }

    fn range(&self, space: Space) -> Option<Range> {
        (!self.is_stable()).then(|| Range {
            space,
            metric: PEAK.to_owned(),
            least: self.least,
            greatest: self.greatest,
            values: self.all.clone(),
        })
    }
}
