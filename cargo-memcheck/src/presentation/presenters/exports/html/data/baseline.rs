//! The figures of a test next to those of its baseline and its limits.

use std::collections::BTreeMap;

use memcheck_core::bound::Bound;
use memcheck_core::judgement::baseline::{self, Baseline, Figures, other_conditions};
use memcheck_core::judgement::finding::Finding;
use memcheck_core::measurement::phase;
use memcheck_core::measurement::record::{Facts, Record};
use memcheck_core::presentation::sizes::apart;
use memcheck_core::size::{Size, exact};
use memcheck_core::space::Space;
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
    pub(in crate::presentation::presenters::exports) limit: Option<FigureLimit>,
    /// True if `now` would be shown as the same size as its limit.
    pub(in crate::presentation::presenters::exports) in_bytes: bool,
}

/// The limits of a figure, from the attribute, the configuration or the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::presentation::presenters::exports) struct FigureLimit {
    /// The lowest one.
    pub(in crate::presentation::presenters::exports) decides: String,
    /// `4.00 MiB is higher`
    pub(in crate::presentation::presenters::exports) others: Option<String>,
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
        read.unwrap_or_default().paired(&outcome.verdict.findings)
    }

    /// Gives a holder of the baseline the name that it has now, if the findings know it by another
    /// tensor, so that a comparison by name sees one holder that has grown.
    fn paired(mut self, findings: &[Finding]) -> Self {
        for finding in findings {
            let known = finding.space.and_then(|space| self.holders.0.get_mut(&space));
            let Some(known) = known else { continue };
            let changed = finding.grown.iter().chain(&finding.shrunk);
            let renamed: Vec<(&str, u64)> = changed
                .filter_map(|it| Some((it.holder.as_str(), known.remove(&it.before()?)?)))
                .collect();
            for (holder, bytes) in renamed {
                *known.entry(holder.to_owned()).or_default() += bytes;
            }
        }
        self
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
    for space in &record.judged {
        let Some(measured) = record.spaces.get(space) else { continue };
        let metrics = &measured.metrics;
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
        let max_allocations =
            limits.max_allocations.value.filter(|_| is_limited).into_iter().collect();
        let has_end = !is_cut;
        let row = |name: String, now, own: Vec<u64>, relative: Option<String>| {
            let then = then.figure(*space, &name);
            let ceiling = then.and_then(|then| {
                let ceiling = baseline::ceiling(&name, then, limits.tolerance.value)?;
                Some((ceiling, source_of_limit(ceiling > then)))
            });
            let is_size = !name.ends_with("allocations");
            let is_close = |limit: &u64| is_size && apart(now, *limit)[0] != Size(now).to_string();
            let in_bytes = own.iter().any(is_close);
            let limit = FigureLimit::new(now, own, ceiling, relative, is_size);
            FigureRow { space: space.to_string(), name, now, then, limit, in_bytes }
        };
        let none = Vec::new;
        for (name, now, own, relative, is_measured) in [
            (
                "peak_allocated",
                metrics.peak_allocated,
                of_peak,
                relative.filter(|_| is_limited),
                true,
            ),
            ("growth", metrics.growth, growth_limit, None, record.measures_growth()),
            ("retained", metrics.retained, retained_limit, None, has_end),
            ("setup", metrics.setup, none(), None, record.iterated),
            ("allocations", metrics.allocations, max_allocations, None, has_end && record.iterated),
            ("allocated_total", metrics.allocated_total, none(), None, has_end && record.iterated),
        ] {
            if is_measured {
                rows.push(row(name.to_owned(), now, own, relative));
            }
        }
        for (phase, figures) in &measured.phases {
            for (name, now) in figures.named(phase) {
                let is_peak = phase::split(&name).is_some_and(|(_, kept)| kept == "peak_allocated");
                let limit = record.phase_limits.get(phase).copied();
                let own = limit.filter(|_| is_peak && is_limited).into_iter().collect();
                rows.push(row(name, now, own, None));
            }
        }
    }
    rows
}

impl FigureLimit {
    /// `own` are the limits of the test, and `ceiling` is that of its baseline. A limit that is `relative` to the
    /// size of a file is not known in bytes.
    fn new(
        now: u64,
        own: Vec<u64>,
        ceiling: Option<(u64, &'static str)>,
        relative: Option<String>,
        is_size: bool,
    ) -> Option<Self> {
        let text = |limit| if is_size { apart(limit, now)[0].clone() } else { exact(limit) };
        let own = own.into_iter().map(|limit| (limit, text(limit)));
        let of_baseline =
            ceiling.map(|(limit, source)| (limit, format!("{} ({source})", text(limit))));
        let mut all: Vec<(u64, String)> = own.chain(of_baseline).collect();
        all.sort_by_key(|(limit, _)| *limit);
        // Of equal limits, the one of the test is stated.
        all.dedup_by_key(|(limit, _)| *limit);
        let mut texts = all.into_iter().map(|(_, text)| text);
        let decides = match (texts.next(), relative) {
            (Some(lowest), Some(relative)) => format!("{relative} or {lowest}, the lower"),
            (lowest, relative) => lowest.or(relative)?,
        };
        let others: Vec<String> = texts.collect();
        let verb = if others.len() == 1 { "is" } else { "are" };
        let others = (!others.is_empty()).then(|| format!("{} {verb} higher", others.join(", ")));
        Some(Self { decides, others })
    }
}

/// The origin of a limit that a baseline sets.
pub(in crate::presentation::presenters::exports) fn source_of_limit(
    has_tolerance: bool,
) -> &'static str {
    if has_tolerance { "baseline and tolerance" } else { "baseline" }
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{Code, GrownHolder};
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
    fn a_body_that_did_not_iterate_has_no_figures_of_iterations() {
        let mut record = leaky().report.unwrap().record;
        record.iterated = false;
        record.spaces.values_mut().for_each(|measured| measured.metrics.growth = 0);
        let rows = figures(&record, &Then::default());
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert!(
            !names.is_empty() && names.iter().all(|it| ["peak_allocated", "retained"].contains(it)),
            "{names:?}"
        );
    }

    fn limit(decides: &str, others: Option<&str>) -> FigureLimit {
        FigureLimit { decides: decides.to_owned(), others: others.map(str::to_owned) }
    }

    #[test]
    fn of_several_limits_the_lowest_decides() {
        let of = |own: &[u64], ceiling, relative: Option<&str>, is_size| {
            FigureLimit::new(0, own.to_vec(), ceiling, relative.map(str::to_owned), is_size)
        };
        assert_eq!(of(&[], None, None, true), None);
        assert_eq!(of(&[12], None, None, true), Some(limit("12 B", None)));
        let baseline = Some((12, "baseline"));
        assert_eq!(
            of(&[9], baseline, None, true),
            Some(limit("9 B", Some("12 B (baseline) is higher")))
        );
        assert_eq!(
            of(&[20], baseline, None, true),
            Some(limit("12 B (baseline)", Some("20 B is higher")))
        );
        assert_eq!(
            of(&[30, 20], baseline, None, true).unwrap().others.as_deref(),
            Some("20 B, 30 B are higher")
        );
        assert_eq!(of(&[12], baseline, None, true), Some(limit("12 B", None)));
        let wide = Some((2_200, "baseline and tolerance"));
        assert_eq!(of(&[], wide, None, false), Some(limit("2,200 (baseline and tolerance)", None)));
        assert_eq!(of(&[], None, Some("110 %"), true), Some(limit("110 %", None)));
        let both = limit("110 % or 12 B (baseline), the lower", None);
        assert_eq!(of(&[], baseline, Some("110 %"), true), Some(both));
    }

    #[test]
    fn a_holder_with_another_shape_has_its_present_name_in_the_baseline() {
        let host: BTreeMap<String, u64> =
            [("randn [8] f32", 32), ("randn [16] f32", 64), ("relu [1] f32", 4)]
                .map(|(name, bytes)| (name.to_owned(), bytes))
                .into();
        let holders = baseline::Holders([(Space::Host, host)].into());
        let grown = |now: &str, was: Option<&str>| GrownHolder {
            holder: now.to_owned(),
            was_tensor: was.map(str::to_owned),
            ..GrownHolder::default()
        };
        // Each shape has doubled, so that one of the names is that of both runs.
        let finding = Finding {
            space: Some(Space::Host),
            grown: vec![
                grown("randn [16] f32", Some("[8] f32")),
                grown("randn [32] f32", Some("[16] f32")),
                grown("add [1] f32", None),
            ],
            ..Finding::new(Code::PeakRegression, "")
        };
        let then = Then { holders, ..Then::default() }.paired(&[finding]);
        let names = |then: &Then| then.holders(Space::Host).unwrap().bytes;
        let expected = [("randn [16] f32", 32), ("randn [32] f32", 64), ("relu [1] f32", 4)];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(names(&then), expected.into());
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
            (row("peak_allocated").limit.as_ref(), row("setup").limit.as_ref()),
            (Some(&limit("4.01 KiB (baseline and tolerance)", None)), None),
            "a set-up is kept for information"
        );
        assert_eq!(row("growth").then, Some(7));
        let lower = limit("4.01 KiB (baseline and tolerance)", Some("1.00 MiB is higher"));
        assert_eq!(row("growth").limit, Some(lower));
        assert_eq!((row("allocations").then, row("allocations").limit.as_ref()), (None, None));
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
