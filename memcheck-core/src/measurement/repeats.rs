//! The figures of several runs of one test, and the ranges of those that differ. A test with
//! figures that differ is run up to [`MOST_RUNS`] times, and all runs are judged together.

use serde::{Deserialize, Serialize};

use crate::measurement::figures::Figures;
use crate::size::{both, counted, exact};
use crate::space::Space;

/// The most runs of a test whose figures differ from run to run.
pub const MOST_RUNS: usize = 5;

/// The figures of several runs of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// Runs that `--repeat` asked for; `None` if they were added because two runs differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u32>,
    /// The figures of each run, without those that depend on further iterations if it had any.
    pub runs: Vec<Figures>,
}

/// A figure that differs between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The memory space.
    pub space: Space,
    /// The name of the figure: `peak_allocated`.
    pub metric: String,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub greatest: u64,
    /// The value of each run, in order.
    pub values: Vec<u64>,
}

impl Range {
    /// True if the figure is a number of allocations, false if it is a number of bytes.
    pub fn is_count(&self) -> bool {
        is_count(&self.metric)
    }

    /// Formats a value of this figure with its unit.
    pub fn value(&self, value: u64) -> String {
        value_text(&self.metric, value)
    }

    /// Formats the figure with its range: "`setup` of host is 4 B to 8 B in 5 runs".
    pub fn text(&self) -> String {
        let Self { space, metric, least, greatest, values } = self;
        format!(
            "`{metric}` of {space} is {} to {} in {} runs",
            self.value(*least),
            self.value(*greatest),
            values.len()
        )
    }
}

fn is_count(metric: &str) -> bool {
    matches!(metric, "allocations" | "most_allocations")
}

/// Formats a value of the figure `metric` with its unit.
pub(crate) fn value_text(metric: &str, value: u64) -> String {
    if is_count(metric) { exact(value) } else { both(value) }
}

impl Repeats {
    /// The figures that differ between the runs, with their ranges.
    pub fn ranges(&self) -> Vec<Range> {
        let mut keys: Vec<(Space, &str)> = Vec::new();
        for run in &self.runs {
            for (space, by_name) in &run.0 {
                keys.extend(by_name.keys().map(|name| (*space, name.as_str())));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        let ranges = keys.into_iter().filter_map(|(space, metric)| {
            let values = self.values(space, |by_name| by_name(metric));
            let (least, greatest) = (*values.iter().min()?, *values.iter().max()?);
            let metric = metric.to_owned();
            (least < greatest).then_some(Range { space, metric, least, greatest, values })
        });
        ranges.collect()
    }

    /// `pick` gets a function that looks up a figure by name, in one run and in this space.
    pub(crate) fn values(
        &self,
        space: Space,
        pick: impl Fn(&dyn Fn(&str) -> Option<u64>) -> Option<u64>,
    ) -> Vec<u64> {
        let of_space = self.runs.iter().filter_map(|run| run.0.get(&space));
        of_space.filter_map(|run| pick(&|name: &str| run.get(name).copied())).collect()
    }

    /// A line about the figures that differ, without those that a finding has `reported`. If runs
    /// were added and all their figures are equal, only live bytes between two iterations, which a
    /// note of the record has, were different.
    pub fn note(&self, reported: &[&Range]) -> Option<String> {
        let ranges = self.ranges();
        if ranges.is_empty() && self.asked.is_none() {
            let runs = counted(self.runs.len() as u64, "run", "runs");
            return Some(format!(
                "the figures that limits and baselines judge are equal in {runs}"
            ));
        }
        let ranges: Vec<String> =
            ranges.iter().filter(|range| !reported.contains(range)).map(Range::text).collect();
        (!ranges.is_empty())
            .then(|| format!("the test is not deterministic: {}", ranges.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::measurement::record::example::GPU;

    fn run(figures: &[(&str, u64)]) -> Figures {
        let by_name = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Figures(BTreeMap::from([(GPU, by_name)]))
    }

    fn repeats(runs: &[&[(&str, u64)]]) -> Repeats {
        Repeats { asked: None, runs: runs.iter().map(|figures| run(figures)).collect() }
    }

    #[test]
    fn only_figures_that_differ_have_a_range() {
        let same = repeats(&[&[("setup", 4), ("retained", 0)], &[("setup", 4), ("retained", 0)]]);
        assert_eq!(same.ranges(), Vec::new());
        let note = "the figures that limits and baselines judge are equal in 2 runs";
        assert_eq!(same.note(&[]).as_deref(), Some(note), "the runs were added for a reason");
        assert_eq!(Repeats { asked: Some(2), ..same }.note(&[]), None);
        // A run that went beyond the measured iterations has no peak to compare.
        let moved = repeats(&[
            &[("setup", 4), ("peak_allocated", 9)],
            &[("setup", 6)],
            &[("setup", 5), ("peak_allocated", 9)],
        ]);
        let ranges = moved.ranges();
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        assert_eq!((ranges[0].least, ranges[0].greatest), (4, 6));
        assert_eq!(ranges[0].values, [4, 6, 5]);
        let note = moved.note(&[]).unwrap();
        assert_eq!(
            note,
            "the test is not deterministic: `setup` of cuda:0 is 4 B to 6 B in 3 runs"
        );
        assert_eq!(moved.note(&[&ranges[0]]), None, "a finding reports it");
    }

    #[test]
    fn counts_have_no_unit() {
        let counts = repeats(&[&[("allocations", 1_000)], &[("allocations", 2_000)]]);
        let text = counts.ranges()[0].text();
        assert_eq!(text, "`allocations` of cuda:0 is 1,000 to 2,000 in 2 runs");
    }
}
