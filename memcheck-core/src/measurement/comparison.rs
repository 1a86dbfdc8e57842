//! Compares the runs of one test by their figures.

use crate::measurement::figures::Figures;
use crate::measurement::record::Record;
use crate::measurement::repeats::Repeats;

/// Figures that depend on the number of iterations after the measured ones.
const LATER_FIGURES: [&str; 3] = ["peak_allocated", "retained", "retained_again"];

/// The figures that compare two runs: those of a baseline, `allocated`, `retained_again` and, if
/// the test limits them, `most_allocations` of an iteration.
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

/// The growth is left out, because a separate run decides it.
pub(crate) fn compared(record: &Record) -> Figures {
    without(figures(record), &["growth"])
}

pub(crate) fn of_measured_iterations(record: &Record) -> Figures {
    without(compared(record), &LATER_FIGURES)
}

pub(crate) fn without(mut figures: Figures, names: &[&str]) -> Figures {
    for by_name in figures.0.values_mut() {
        by_name.retain(|name, _| !names.contains(&name.as_str()));
    }
    figures
}

/// True if a figure that both runs have differs.
pub(crate) fn differ(first: &Figures, second: &Figures) -> bool {
    let of_second = |space, name| second.0.get(space)?.get(name);
    first.0.iter().any(|(space, by_name)| {
        by_name
            .iter()
            .any(|(name, value)| of_second(space, name).is_some_and(|other: &u64| other != value))
    })
}

pub(crate) fn add(record: &mut Record, further: Figures) {
    let own = compared(record);
    let repeats = record.repeats.get_or_insert_with(|| Repeats { asked: None, runs: vec![own] });
    repeats.runs.push(further);
}

/// The figures of all runs that were merged into a record.
pub fn runs(record: &Record) -> Vec<Figures> {
    let further = record.repeats.iter().flat_map(|repeats| repeats.runs.iter().skip(1)).cloned();
    std::iter::once(figures(record)).chain(further).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::limits::Layer;
    use crate::measurement::record::example::{GPU, armed, limits, record};
    use crate::measurement::record::{Metrics, SpaceRecord};

    fn run(figures: &[(&str, u64)]) -> Figures {
        let by_name = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Figures(BTreeMap::from([(GPU, by_name)]))
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
