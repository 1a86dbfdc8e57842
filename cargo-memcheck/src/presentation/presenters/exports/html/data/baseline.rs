//! The figures of a test next to those of its baseline and its limits.

use std::collections::BTreeMap;

use memcheck_core::bound::Bound;
use memcheck_core::judgement::baseline::{self, Baseline, Figures, other_conditions};
use memcheck_core::measurement::phase;
use memcheck_core::measurement::record::{Facts, Record};
use memcheck_core::presentation::sizes::apart;
use memcheck_core::size::{Size, exact};
use memcheck_core::space::Space;
use memcheck_core::tolerance::Tolerance;
use serde::Serialize;

use super::sources::Sources;
use crate::discovery::task::TestOutcome;
use crate::presentation::presenters::findings::is_cut_short;

/// The accepted figures of a test, if they are comparable with those of the run.
#[derive(Debug, Default)]
pub(in crate::presentation::presenters::exports) struct Then {
    figures: Figures,
    holders: baseline::Holders,
}

/// A figure of one space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::presentation::presenters::exports) struct FigureRow {
    pub(in crate::presentation::presenters::exports) space: String,
    pub(in crate::presentation::presenters::exports) name: String,
    pub(in crate::presentation::presenters::exports) now: u64,
    pub(in crate::presentation::presenters::exports) then: Option<u64>,
    pub(in crate::presentation::presenters::exports) limit: Option<String>,
    /// The largest value that the baseline allows.
    pub(in crate::presentation::presenters::exports) baseline_limit: Option<String>,
    /// True if `now` would be shown as the same size as its limit.
    pub(in crate::presentation::presenters::exports) in_bytes: bool,
}

/// The holders of a peak in the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Holders {
    bytes: BTreeMap<String, u64>,
    /// A holder that the baseline lacks had at most so many bytes.
    least: u64,
}

/// A baseline has at most so many holders.
const MOST_HOLDERS: usize = 12;

impl Then {
    /// Reads the snapshot of a test. A snapshot that cannot be read is a finding of the test.
    pub(in crate::presentation::presenters::exports) fn read(
        outcome: &TestOutcome,
        sources: &Sources,
    ) -> Self {
        let report = outcome.report.as_ref();
        let read = report.and_then(|report| {
            let text = sources.snapshot(report.snapshot.as_deref()?)?;
            Self::parse(&text, &report.record.facts)
        });
        read.unwrap_or_default()
    }

    fn parse(text: &str, now: &Facts) -> Option<Self> {
        match Baseline::from_text(text) {
            Baseline::Found { figures, holders, facts }
                if other_conditions(&facts, now).is_none() =>
            {
                Some(Self { figures, holders })
            }
            _ => None,
        }
    }

    pub(super) fn figure(&self, space: Space, name: &str) -> Option<u64> {
        self.figures.0.get(&space)?.get(name).copied()
    }

    pub(super) fn holders(&self, space: Space) -> Option<Holders> {
        let bytes = self.holders.0.get(&space).filter(|bytes| !bytes.is_empty())?.clone();
        let is_full = bytes.len() >= MOST_HOLDERS;
        let least = bytes.values().min().copied().filter(|_| is_full).unwrap_or(0);
        Some(Holders { bytes, least })
    }
}

/// The figures of the judged spaces.
pub(in crate::presentation::presenters::exports) fn figures(
    record: &Record,
    then: &Then,
) -> Vec<FigureRow> {
    let limits = &record.limits;
    let mut rows = Vec::new();
    // A body that did not end as expected has only the figures until then.
    let is_cut = is_cut_short(record);
    let of_the_end = ["retained", "allocations", "allocated_total"];
    for space in &record.judged {
        let Some(measured) = record.spaces.get(space) else { continue };
        let metrics = &measured.metrics;
        let has_growth = record.measures_growth();
        let is_limited = !record.has_own_limits(*space);
        let (peak, relative) = match &limits.max_peak.value {
            Some(Bound::Bytes(size)) => (Some(size.0), None),
            Some(Bound::Relative(relative)) => (None, Some(relative.to_string())),
            None => (None, None),
        };
        let host_peak = limits.max_host_peak.value.filter(|_| *space == Space::Host);
        let of_peak = peak.filter(|_| is_limited).into_iter().chain(host_peak).collect();
        let growth_limit = record.max_growth_of(*space, limits).into_iter().collect();
        let retained_limit: Vec<u64> =
            is_limited.then_some(limits.max_retained.value).into_iter().collect();
        let max_allocations = limits.max_allocations.value.filter(|_| is_limited);
        let none = Vec::new;
        let row = |name: String, now, limit, in_bytes| {
            let then = then.figure(*space, &name);
            let baseline_limit =
                then.and_then(|then| limit_of(&name, then, now, limits.tolerance.value));
            let space = space.to_string();
            FigureRow { space, name, now, then, limit, baseline_limit, in_bytes }
        };
        for (name, now, sizes, other) in [
            ("peak_allocated", metrics.peak_allocated, of_peak, relative.filter(|_| is_limited)),
            ("growth", metrics.growth, growth_limit, None),
            ("retained", metrics.retained, retained_limit, None),
            ("setup", metrics.setup, none(), None),
            ("allocations", metrics.allocations, none(), max_allocations.map(|it| it.to_string())),
            ("allocated_total", metrics.allocated_total, none(), None),
        ] {
            if (name == "growth" && !has_growth) || (is_cut && of_the_end.contains(&name)) {
                continue;
            }
            let in_bytes = sizes.iter().any(|limit| apart(now, *limit)[0] != Size(now).to_string());
            let sizes = sizes.into_iter().map(|limit| apart(limit, now)[0].clone());
            let limit: Vec<String> = other.into_iter().chain(sizes).collect();
            let limit = (!limit.is_empty()).then(|| limit.join(", "));
            rows.push(row(name.to_owned(), now, limit, in_bytes));
        }
        for (phase, figures) in &measured.phases {
            for (name, now) in figures.named(phase) {
                let is_peak = phase::split(&name).is_some_and(|(_, kept)| kept == "peak_allocated");
                let limit = record.phase_limits.get(phase).copied();
                let limit = limit.filter(|_| is_peak && is_limited);
                let in_bytes =
                    limit.is_some_and(|limit| apart(now, limit)[0] != Size(now).to_string());
                let limit = limit.map(|limit| apart(limit, now)[0].clone());
                rows.push(row(name, now, limit, in_bytes));
            }
        }
    }
    rows
}

/// The accepted value with its tolerance, where `now` is the value that is shown next to it.
fn limit_of(name: &str, then: u64, now: u64, tolerance: Tolerance) -> Option<String> {
    let ceiling = baseline::ceiling(name, then, tolerance)?;
    let text = match name {
        "allocations" => exact(ceiling),
        _ => apart(ceiling, now)[0].clone(),
    };
    Some(format!("{text} ({})", source_of_limit(ceiling > then)))
}

/// The origin of a limit that a baseline sets.
pub(in crate::presentation::presenters::exports) fn source_of_limit(
    has_tolerance: bool,
) -> &'static str {
    if has_tolerance { "baseline and tolerance" } else { "baseline" }
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::location::Roots;
    use memcheck_core::measurement::record::Outcome;

    use super::*;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn a_body_that_panicked_has_no_figures_of_its_end() {
        let mut record = leaky().report.unwrap().record;
        let names = |record: &Record| -> Vec<String> {
            figures(record, &Then::default()).into_iter().map(|row| row.name).collect()
        };
        let of_the_end = ["retained", "allocations", "allocated_total"].map(str::to_owned);
        assert!(of_the_end.iter().all(|name| names(&record).contains(name)));
        record.outcome = Outcome::Panicked { message: "no".to_owned() };
        let cut = names(&record);
        assert!(cut.contains(&"peak_allocated".to_owned()), "{cut:?}");
        assert!(!of_the_end.iter().any(|name| cut.contains(name)), "{cut:?}");
        record.should_panic = Some("no".to_owned());
        assert!(of_the_end.iter().all(|name| names(&record).contains(name)), "as expected");
    }

    #[test]
    fn figures_have_the_limit_and_the_baseline() {
        let record = leaky().report.unwrap().record;
        let body = "host:\n  growth: 7\n  peak_allocated: 12\n  retained: 0\n  setup: 4\n  \
                    peak_holders:\n    new [1] f32: 4";
        let header = serde_json::to_string(&record.facts).unwrap();
        let text = format!("---\nsource: mem.rs\ninfo: {header}\n---\n{body}\n");
        let then = Then::parse(&text, &record.facts).unwrap();
        let rows = figures(&record, &then);
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!((row("peak_allocated").now, row("peak_allocated").then), (26 << 20, Some(12)));
        assert_eq!(
            (row("growth").then, row("growth").limit.as_deref()),
            (Some(7), Some("1.0 MiB"))
        );
        let limit = |name: &str| row(name).baseline_limit.as_deref();
        assert_eq!(limit("peak_allocated"), Some("4.0 KiB (baseline and tolerance)"));
        assert_eq!((limit("retained"), limit("setup")), (None, None), "kept for information");
        assert_eq!((row("allocations").then, limit("allocations")), (None, None));
        let none = limit_of("peak_allocated", 12, 0, Tolerance::NONE);
        assert_eq!(none.as_deref(), Some("12 B (baseline)"));
        let wide = "10%".parse().unwrap();
        let of = |name, then| limit_of(name, then, 0, wide);
        let allowed = of("peak_allocated", 2048).unwrap();
        assert_eq!(allowed, "2.2 KiB (baseline and tolerance)");
        assert_eq!(of("allocations", 2000).unwrap(), "2,200 (baseline and tolerance)");
        assert_eq!(then.holders(Space::Host).unwrap().bytes["new [1] f32"], 4);
        let other = Facts { candle: "0.1.0".to_owned(), ..record.facts.clone() };
        assert!(Then::parse(&text, &other).is_none() && Then::parse("torn", &other).is_none());

        // Stored results can name any file.
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.snap"), &text).unwrap();
        std::fs::write(folder.path().join("other.snap"), &text).unwrap();
        std::os::unix::fs::symlink("../other.snap", root.join("link.snap")).unwrap();
        let mut outcome = leaky();
        let mut peak = |snapshot: &str, sources: &Sources| {
            let report = outcome.report.as_mut().unwrap();
            report.snapshot = Some(root.join(snapshot));
            Then::read(&outcome, sources).figure(Space::Host, "peak_allocated")
        };
        let sources = Sources::new(Roots::new(&root, None));
        assert_eq!(peak("a.snap", &sources), Some(12));
        for outside in ["link.snap", "../other.snap", "/dev/zero", "none.snap"] {
            assert_eq!(peak(outside, &sources), None, "{outside}");
        }
        assert_eq!(peak("a.snap", &Sources::default()), None);
    }
}
