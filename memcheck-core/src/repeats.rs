//! The figures of several runs of one test, and the ranges of those that differ.
//!
//! A further run of a test must measure the figures of the first. If it does not, the
//! test is run up to [`MOST_RUNS`] times, and [`crate::verdict`] judges all runs together.

use serde::{Deserialize, Serialize};

use crate::baseline::{Baseline, Figures};
use crate::explain;
use crate::finding::{Code, Finding, Level};
use crate::protocol::Report;
use crate::record::Record;
use crate::size::{both, exact};
use crate::space::Space;

/// Most runs of a test whose figures differ from run to run.
pub const MOST_RUNS: usize = 5;

/// Figures that a run of more iterations than the measured ones has otherwise.
const OF_THE_END: [&str; 3] = ["peak_allocated", "retained", "retained_again"];

/// The figures of several runs of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// The number of runs that `--repeat` asked for. `None` if the runs were added
    /// because two of them measured different figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u32>,
    /// The figures of each run, in order. A run of more iterations has only those of the
    /// measured iterations.
    pub runs: Vec<Figures>,
}

/// A figure that is not the same in all runs.
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
    /// True if the figure is a number of allocations and not of bytes.
    pub fn is_count(&self) -> bool {
        is_count(&self.metric)
    }

    /// A value of this figure with its unit.
    pub fn value(&self, value: u64) -> String {
        if self.is_count() { exact(value) } else { both(value) }
    }

    /// The figure with its range: "`setup` of host is 4 B to 8 B in 5 runs".
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

    /// One value of each run that has it, in order. `pick` is given the figures of the run
    /// in this space by their names.
    pub(crate) fn values(
        &self,
        space: Space,
        pick: impl Fn(&dyn Fn(&str) -> Option<u64>) -> Option<u64>,
    ) -> Vec<u64> {
        let of_space = self.runs.iter().filter_map(|run| run.0.get(&space));
        of_space.filter_map(|run| pick(&|name: &str| run.get(name).copied())).collect()
    }

    /// A line for people about the figures that differ, without those that a finding
    /// reports already.
    pub fn note(&self, findings: &[Finding]) -> Option<String> {
        let reported =
            |range: &Range| findings.iter().any(|finding| finding.range.as_ref() == Some(range));
        let ranges: Vec<String> =
            self.ranges().iter().filter(|range| !reported(range)).map(Range::text).collect();
        (!ranges.is_empty())
            .then(|| format!("the test is not deterministic: {}", ranges.join(", ")))
    }
}

/// The figures by which two runs of a test are compared: those that a baseline keeps,
/// `allocated`, the bytes that a second round of the body added (`retained_again`), and
/// the most allocations of an iteration (`most_allocations`) if the test limits them.
pub fn figures(record: &Record) -> Figures {
    let mut figures = Figures::of(record);
    for (space, by_name) in &mut figures.0 {
        let Some(measured) = record.spaces.get(space) else { continue };
        by_name.insert("allocated".to_owned(), measured.metrics.allocated);
        if let Some(again) = measured.retained_again {
            by_name.insert("retained_again".to_owned(), again);
        }
        if record.limits.max_allocations.value.is_some()
            && let Some(most) = measured.allocations.iter().max()
        {
            by_name.insert("most_allocations".to_owned(), *most);
        }
    }
    figures
}

/// The figures by which a further run is compared with the first. The growth is not one
/// of them, because runs of their own decide it.
pub(crate) fn compared(record: &Record) -> Figures {
    without(figures(record), &["growth"])
}

/// Those of them that do not depend on how many iterations followed the measured ones.
pub(crate) fn of_measured_iterations(record: &Record) -> Figures {
    without(compared(record), &OF_THE_END)
}

/// The figures without these.
pub(crate) fn without(mut figures: Figures, names: &[&str]) -> Figures {
    for by_name in figures.0.values_mut() {
        by_name.retain(|name, _| !names.contains(&name.as_str()));
    }
    figures
}

/// True if a figure that both runs have is not the same in both.
pub(crate) fn differ(first: &Figures, second: &Figures) -> bool {
    let of_second = |space, name| second.0.get(space)?.get(name);
    first.0.iter().any(|(space, by_name)| {
        by_name
            .iter()
            .any(|(name, value)| of_second(space, name).is_some_and(|other: &u64| other != value))
    })
}

/// Adds the figures of a further run to those of a record.
pub(crate) fn add(record: &mut Record, further: Figures) {
    let own = compared(record);
    let repeats = record.repeats.get_or_insert_with(|| Repeats { asked: None, runs: vec![own] });
    repeats.runs.push(further);
}

/// The figures of all runs that a record was made of.
pub fn runs(record: &Record) -> Vec<Figures> {
    let further = record.repeats.iter().flat_map(|repeats| repeats.runs.iter().skip(1)).cloned();
    std::iter::once(figures(record)).chain(further).collect()
}

/// The report of a test that was run several times on request: the first one, judged by
/// the figures of all runs.
pub fn repeated(
    mut first: Report,
    further: Vec<Figures>,
    asked: u32,
    baseline: &Baseline,
    level: impl Fn(Code) -> Level,
) -> Report {
    let others = explain::other_findings(&first, baseline, &level);
    let mut all = runs(&first.record);
    all.extend(further);
    first.record.repeats = Some(Repeats { asked: Some(asked), runs: all });
    explain::rejudged(first, others, baseline, &level)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::limits::Layer;
    use crate::record::{Metrics, SpaceRecord};
    use crate::verdict::tests::{GPU, armed, limits, record};

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
        assert_eq!((same.ranges(), same.note(&[])), (Vec::new(), None));
        // A run of more iterations has no peak to compare.
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
        let range = ranges.into_iter().next();
        let finding = Finding { range, ..Finding::new(Code::Unstable, "") };
        assert_eq!(moved.note(&[finding]), None, "the finding reports it");
    }

    #[test]
    fn counts_have_no_unit() {
        let counts = repeats(&[&[("allocations", 1_000)], &[("allocations", 2_000)]]);
        let text = counts.ranges()[0].text();
        assert_eq!(text, "`allocations` of cuda:0 is 1,000 to 2,000 in 2 runs");
    }

    #[test]
    fn two_runs_differ_by_a_figure_that_both_have() {
        let first = run(&[("setup", 4), ("retained", 1)]);
        assert!(!differ(&first, &run(&[("setup", 4), ("allocated", 9)])));
        assert!(differ(&first, &run(&[("setup", 4), ("retained", 2)])));
    }

    #[test]
    fn growth_is_compared_only_if_repeats_are_asked_for() {
        let measured = SpaceRecord {
            allocations: vec![1, 7, 1],
            retained_again: Some(3),
            ..armed(Metrics { growth: 5, allocated: 2, ..Metrics::default() })
        };
        let mut record = record(measured);
        let has = |figures: &Figures, name| figures.0[&GPU].contains_key(name);
        assert!(has(&figures(&record), "growth") && !has(&compared(&record), "growth"));
        assert!(!has(&figures(&record), "most_allocations"), "no limit is about them");
        record.limits = limits(Layer { max_allocations: Some(9), ..Layer::default() });
        assert_eq!(figures(&record).0[&GPU]["most_allocations"], 7);
        let partial = of_measured_iterations(&record);
        for name in ["peak_allocated", "retained", "retained_again", "growth"] {
            assert!(!has(&partial, name), "{name}");
        }
        assert!(has(&partial, "setup") && has(&partial, "allocated"));
    }

    #[test]
    fn the_figures_of_all_runs_of_a_record_are_collected_once() {
        let mut record = record(armed(Metrics::default()));
        assert_eq!(runs(&record).len(), 1);
        add(&mut record, run(&[("setup", 1)]));
        add(&mut record, run(&[("setup", 2)]));
        assert_eq!(runs(&record).len(), 3);
        assert_eq!(record.repeats.unwrap().ranges()[0].values, [0, 1, 2]);
    }
}
