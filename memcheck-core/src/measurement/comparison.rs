//! Compares the runs of one test by their figures.

use std::collections::BTreeSet;

use crate::bound::Bound;
use crate::limits::Source;
use crate::measurement::figures::Figures;
use crate::measurement::phase;
use crate::measurement::record::Record;
use crate::measurement::repeats::{Repeats, value_text};
use crate::measurement::traffic::Traffic;
use crate::size::{both, counted};
use crate::space::Space;

/// Figures that depend on the number of iterations after the measured ones. Those of phases do too,
/// because a phase can begin after all iterations.
pub(crate) const LATER_FIGURES: [&str; 3] = ["peak_allocated", "retained", "retained_again"];

fn is_later(name: &str) -> bool {
    LATER_FIGURES.contains(&name) || phase::split(name).is_some()
}

/// The figures that compare two runs: those of a baseline, `allocated`, `retained_again` and, if
/// the test limits them, `most_allocations` and `most_allocated` of an iteration. Spaces that no baseline has are
/// compared by the figures that a limit judges.
pub fn figures(record: &Record) -> Figures {
    let mut figures = Figures::of(record);
    for (space, by_name) in &mut figures.0 {
        let Some(measured) = record.spaces.get(space) else { continue };
        by_name.insert("allocated".to_owned(), measured.metrics.allocated);
        if let Some(again) = measured.retained_again {
            by_name.insert("retained_again".to_owned(), again);
        }
        for traffic in Traffic::ALL {
            let limited = traffic.most(measured).zip(traffic.limit(&record.limits));
            by_name.extend(limited.map(|(most, _)| (traffic.figure().to_owned(), most)));
        }
    }
    for space in &record.judged {
        let judged = judged_without_baseline(record, *space);
        if !judged.is_empty() {
            let named = judged.into_iter().map(|(name, value)| (name.to_owned(), value));
            figures.0.insert(*space, named.collect());
        }
    }
    figures
}

/// The figures of small host blocks, and of the host in a test on a GPU, that a limit judges.
fn judged_without_baseline(record: &Record, space: Space) -> Vec<(&'static str, u64)> {
    let Some(measured) = record.spaces.get(&space) else { return Vec::new() };
    let limits = &record.limits;
    let peak = ("peak_allocated", measured.metrics.peak_allocated);
    match (space, record.has_own_limits(space)) {
        (Space::HostSmall, false) => {
            let limits_peak = matches!(limits.max_peak.value, Some(Bound::Bytes(_)));
            let peak = limits_peak.then_some(peak);
            let again = measured.retained_again.map(|again| ("retained_again", again));
            let retained = ("retained", measured.metrics.retained);
            peak.into_iter().chain([retained]).chain(again).collect()
        }
        (Space::Host, true) => limits.max_host_peak.value.map(|_| peak).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The growth is left out, because a separate run decides it.
pub(crate) fn compared(record: &Record) -> Figures {
    without(figures(record), &["growth"])
}

pub(crate) fn of_measured_iterations(record: &Record) -> Figures {
    let mut figures = compared(record);
    for by_name in figures.0.values_mut() {
        by_name.retain(|name, _| !is_later(name));
    }
    figures
}

/// The figures of the measured iterations of a run that has more of them. Its own peak can be that
/// of a later iteration. It is a figure here only if set-up or a measured iteration is above the
/// peak of `first`.
pub(crate) fn of_longer_run(first: &Record, longer: &Record) -> Figures {
    const PEAK: &str = "peak_allocated";
    let before = compared(first);
    let mut figures = of_measured_iterations(longer);
    for (space, by_name) in &mut figures.0 {
        let before = before.0.get(space).and_then(|by_name| by_name.get(PEAK));
        let peak = longer
            .spaces
            .get(space)
            .map(|measured| measured.measured_peak.unwrap_or(measured.metrics.peak_allocated));
        if let Some((&before, peak)) = before.zip(peak)
            && peak > before
        {
            by_name.insert(PEAK.to_owned(), peak);
        }
    }
    figures
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

/// The figures of the measured iterations that a further run measured otherwise than the first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The figures as text, with their values in both runs.
    pub(crate) figures: Vec<String>,
    /// True if further runs compare them: a baseline or a limit that the test has judges them.
    pub(crate) is_compared: bool,
}

/// Compares two runs by their measured iterations. A space that a run has not used has only zeros.
pub(crate) fn moved(first: &Record, second: &Record) -> Moved {
    let mut moved = Moved::default();
    let (before, after) = (compared(first), of_longer_run(first, second));
    let spaces: BTreeSet<&Space> = first.judged.iter().chain(&second.judged).collect();
    for &space in spaces {
        let mut differing = figures_moved(space, &before, &after);
        moved.is_compared |= !differing.is_empty();
        let has_own_limits = first.has_own_limits(space) || second.has_own_limits(space);
        if differing.is_empty() && !has_own_limits {
            differing.extend(live_bytes_moved(space, first, second));
            moved.is_compared |= !differing.is_empty() && live_bytes_matter(space, first);
        }
        moved.figures.extend(differing);
    }
    moved
}

fn figures_moved<'a>(space: Space, first: &'a Figures, second: &'a Figures) -> Vec<String> {
    let of = |figures: &Figures, name: &str| {
        figures.0.get(&space).and_then(|by_name| by_name.get(name).copied()).unwrap_or(0)
    };
    let of_space = |figures: &'a Figures| figures.0.get(&space).into_iter().flatten();
    let names = of_space(first).filter(|(name, _)| !is_later(name));
    let names: BTreeSet<&String> = names.chain(of_space(second)).map(|(name, _)| name).collect();
    let values = names.into_iter().map(|name| (name, of(first, name), of(second, name)));
    let text = |(name, then, now): (&String, u64, u64)| {
        let (then, now) = (value_text(name, then), value_text(name, now));
        (then != now).then(|| format!("`{name}` of {space} is {}", both_runs(&then, &now)))
    };
    values.filter_map(text).collect()
}

/// Threads can free a block in an earlier or a later iteration, which moves no other figure.
fn live_bytes_moved(space: Space, first: &Record, second: &Record) -> Option<String> {
    let before = &first.spaces.get(&space)?.allocated;
    let after = &second.spaces.get(&space)?.allocated;
    let mut differing = (1..).zip(before.iter().zip(after)).filter(|(_, (then, now))| then != now);
    let (iteration, (then, now)) = differing.next()?;
    let others = match differing.count() {
        0 => String::new(),
        count => format!(" (and after {})", counted(count as u64, "other", "others")),
    };
    let values = both_runs(&both(*then), &both(*now));
    Some(format!("live bytes of {space} after iteration {iteration}{others} are {values}"))
}

/// No baseline has small host blocks, so that their level matters only if the user limits it.
fn live_bytes_matter(space: Space, record: &Record) -> bool {
    space != Space::HostSmall
        || record.limits.max_retained.source != Source::BuiltIn
        || matches!(record.limits.max_peak.value, Some(Bound::Bytes(_)))
}

fn both_runs(first: &str, second: &str) -> String {
    format!("{first} in the first run and {second} in the longer run")
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
    use crate::size::Size;

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
    fn spaces_without_a_baseline_are_compared_by_what_a_limit_judges() {
        let names = |judged: &[Space], layer: Layer| {
            let metrics = Metrics { peak_allocated: 9, retained: 4, ..Metrics::default() };
            let measured = SpaceRecord { retained_again: Some(3), ..armed(metrics) };
            let mut run = record(measured.clone());
            run.judged = judged.to_vec();
            run.spaces = judged.iter().map(|space| (*space, measured.clone())).collect();
            run.limits = limits(layer);
            let figures = compared(&run).0.remove(&judged[0]).unwrap_or_default();
            figures.into_iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>()
        };
        let peak = || Layer { max_peak: Some(Bound::Bytes(Size(5))), ..Layer::default() };
        let host_peak = || Layer { max_host_peak: Some(Size(5)), ..Layer::default() };
        let small = [Space::HostSmall, Space::Host];
        assert_eq!(names(&small, Layer::default()), ["retained 4", "retained_again 3"]);
        let limited = ["peak_allocated 9", "retained 4", "retained_again 3"];
        assert_eq!(names(&small, peak()), limited);
        let on_a_gpu = |space, layer| names(&[space, GPU], layer);
        assert_eq!(on_a_gpu(Space::Host, peak()), [""; 0]);
        assert_eq!(on_a_gpu(Space::Host, host_peak()), ["peak_allocated 9"]);
        assert_eq!(on_a_gpu(Space::HostSmall, host_peak()), [""; 0]);
        assert_eq!(on_a_gpu(Space::CHeap, host_peak()), [""; 0]);
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
