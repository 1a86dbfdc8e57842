//! `phases(decode <= "64 MiB")`: limits on the live bytes in phases of the body.

use std::collections::BTreeSet;

use crate::judgement::finding::{Code, Finding};
use crate::measurement::record::{Record, SpaceRecord};
use crate::size::both;
use crate::space::Space;

/// The phases of a judged space whose peak is above its limit.
pub(super) fn peaks(record: &Record, space: Space, measured: &SpaceRecord) -> Vec<Finding> {
    let limited = record.phase_limits.iter();
    let of_space = limited.filter_map(|(name, limit)| {
        let figures = measured.phases.get(name).filter(|it| it.peak_allocated > *limit)?;
        let (peak, before) = (figures.peak_allocated, figures.live_at_start);
        let before = match before {
            0 => String::new(),
            bytes => format!(", {} of them from before it", both(bytes)),
        };
        let message = format!(
            "the peak in {space} during the phase `{name}` is {}{before} (limit {})",
            both(peak),
            both(*limit)
        );
        Some(Finding {
            space: Some(space),
            phase: Some(name.clone()),
            figure: Some(peak),
            limit: Some(*limit),
            ..Finding::new(Code::PeakLimit, message)
        })
    });
    of_space.collect()
}

/// A limited phase that the body did not have.
pub(super) fn missing(record: &Record) -> Option<Finding> {
    let measured: BTreeSet<&String> =
        record.spaces.values().flat_map(|measured| measured.phases.keys()).collect();
    let name = record.phase_limits.keys().find(|name| !measured.contains(name))?;
    let names: Vec<String> = measured.iter().map(|name| format!("`{name}`")).collect();
    let known = match names.as_slice() {
        [] => "the body has no phases".to_owned(),
        all => format!("the body has only {}", all.join(", ")),
    };
    let finding = Finding {
        phase: Some(name.clone()),
        ..Finding::new(Code::NotMeasured, format!("`phases` limits `{name}`, but {known}"))
    };
    Some(finding.hint(format!("call `trial.phase(\"{name}\", || …)`, or remove the limit")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::judge;
    use super::super::tests::kept;
    use super::*;
    use crate::judgement::baseline::{Baseline, Figures, Holders};
    use crate::judgement::finding::Finding;
    use crate::limits::Layer;
    use crate::measurement::comparison;
    use crate::measurement::phase::PhaseFigures;
    use crate::measurement::record::Metrics;
    use crate::measurement::record::example::{armed, limits, record};

    /// A test with the limit 50 B of the phase `decode`, whose peak and growth are these.
    fn run(phase: &str, peak: u64, growth: u64) -> Record {
        let figures = PhaseFigures { peak_allocated: peak, growth, live_at_start: 9 };
        let measured = armed(Metrics { peak_allocated: 100, ..Metrics::default() });
        let phases = BTreeMap::from([(phase.to_owned(), figures)]);
        let mut record = record(SpaceRecord { phases, ..measured });
        record.phase_limits = BTreeMap::from([("decode".to_owned(), 50)]);
        record
    }

    fn found(record: &Record, baseline: &Baseline) -> Vec<Finding> {
        judge(record, baseline, &limits(Layer::default()), |code| code.default_level(false))
            .findings
    }

    #[test]
    fn a_phase_above_its_limit_is_named() {
        let findings = found(&run("decode", 51, 0), &Baseline::Off);
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(finding.code, Code::PeakLimit);
        assert_eq!(finding.phase.as_deref(), Some("decode"));
        assert_eq!((finding.figure, finding.limit), (Some(51), Some(50)));
        assert_eq!(
            finding.message,
            "the peak in cuda:0 during the phase `decode` is 51 B, 9 B of them from before it \
             (limit 50 B)"
        );
        assert_eq!(found(&run("decode", 50, 0), &Baseline::Off), []);
    }

    #[test]
    fn a_limited_phase_that_the_body_does_not_have_is_not_measured() {
        let findings = found(&run("load", 51, 0), &Baseline::Off);
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(finding.code, Code::NotMeasured);
        assert_eq!(finding.message, "`phases` limits `decode`, but the body has only `load`");
    }

    #[test]
    fn a_baseline_has_the_figures_of_phases() {
        let run = |phase, peak, growth| Record {
            phase_limits: BTreeMap::new(),
            ..run(phase, peak, growth)
        };
        let codes = |now: &Record, then: &Record| {
            let text = |found: Finding| format!("{} {:?}", found.code, found.phase);
            found(now, &kept(then)).into_iter().map(text).collect::<Vec<_>>()
        };
        let then = run("decode", 40, 4);
        assert_eq!(codes(&then, &then), [""; 0]);
        assert_eq!(codes(&run("decode", 41, 4), &then), ["peak-regression Some(\"decode\")"]);
        assert_eq!(codes(&run("decode", 40, 5), &then), ["growth-regression Some(\"decode\")"]);
        assert_eq!(codes(&run("decode", 39, 4), &then), ["improved Some(\"decode\")"]);
        let text = Figures::of(&then).to_yaml(&Holders::default());
        assert!(text.contains("  decode/growth: 4\n  decode/peak_allocated: 40\n"), "{text}");
        assert_eq!(Figures::from_yaml(&text).unwrap(), Figures::of(&then));
        // A phase that is new, or is no longer there.
        for (now, then) in [(&run("load", 40, 4), &then), (&then, &run("load", 40, 4))] {
            assert_eq!(codes(now, then), ["uncomparable-baseline None"]);
        }
    }

    #[test]
    fn a_limit_that_only_some_runs_exceed_is_unstable() {
        let with_second = |first: u64, second: u64| {
            let mut first = run("decode", first, 0);
            comparison::add(&mut first, comparison::compared(&run("decode", second, 0)));
            let codes = found(&first, &Baseline::Off).into_iter().map(|found| found.code);
            codes.collect::<Vec<_>>()
        };
        assert_eq!(with_second(51, 50), [Code::Unstable]);
        assert_eq!(with_second(50, 49), []);
        assert_eq!(with_second(52, 51), [Code::PeakLimit]);
    }
}
