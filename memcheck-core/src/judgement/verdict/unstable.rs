//! `unstable`: the limit or baseline of a figure is between its values in the runs of one test. The
//! finding replaces those that only some runs have; a limit that all exceed keeps its own.

use super::{is_overhead, regression, traffic};
use crate::bound::Bound;
use crate::judgement::baseline::Baseline;
use crate::judgement::blame;
use crate::judgement::finding::{Class, Code, Finding};
use crate::limits::{Limits, Source};
use crate::measurement::phase;
use crate::measurement::record::Record;
use crate::measurement::repeats::{Range, Repeats};
use crate::measurement::traffic::Traffic;
use crate::size::Size;
use crate::space::Space;
use crate::tolerance::Tolerance;

const BASELINE: &str = "the baseline";

struct Threshold {
    code: Code,
    name: &'static str,
    ceiling: u64,
    then: Option<u64>,
    exceeding: usize,
    runs: usize,
}

impl Threshold {
    fn is_exceeded_by_some(&self) -> bool {
        (1..self.runs).contains(&self.exceeding)
    }

    /// A figure can have several limits of one code.
    fn is_of(&self, finding: &Finding) -> bool {
        self.code == finding.code && finding.limit.is_none_or(|limit| limit == self.ceiling)
    }

    fn describe(&self, range: &Range) -> String {
        let Self { name, ceiling, then, exceeding, .. } = self;
        let tolerated = match then {
            Some(then) if then != ceiling => {
                format!(" (limit with its tolerance: {})", range.value(*ceiling))
            }
            _ => String::new(),
        };
        let threshold = then.unwrap_or(*ceiling);
        format!("exceeds {name} of {}{tolerated} in {exceeding} of them", range.value(threshold))
    }
}

/// With repeats that the user asked for, each figure that differs is a finding.
pub(super) fn replace_unstable(
    record: &Record,
    baseline: &Baseline,
    limits: &Limits,
    findings: &mut Vec<Finding>,
) {
    let Some(repeats) = &record.repeats else { return };
    let mut unstable = Vec::new();
    let ranges = repeats.ranges();
    let retained_in = |space| {
        let is_retained = |range: &&Range| range.space == space && range.metric == "retained";
        ranges.iter().find(is_retained).map_or(0, |range| range.greatest)
    };
    for range in ranges
        .iter()
        .filter(|range| range.metric != "retained" || !is_overhead(range.space, retained_in))
    {
        let thresholds = thresholds(record, (baseline, limits), repeats, range);
        let between: Vec<&Threshold> =
            thresholds.iter().filter(|threshold| threshold.is_exceeded_by_some()).collect();
        if between.is_empty() && repeats.asked.is_none() {
            continue;
        }
        findings.retain(|finding| {
            let replaced = between.iter().any(|threshold| threshold.is_of(finding));
            // A lower figure of one run is not an improvement.
            let replaced = replaced || finding.code == Code::Improved;
            finding.space != Some(range.space) || !replaced
        });
        unstable.push(self::finding(record, repeats, &between, range.clone()));
    }
    let is_bookkeeping = |finding: &Finding| finding.code.row().class == Class::Bookkeeping;
    let place = findings.iter().position(is_bookkeeping).unwrap_or(findings.len());
    findings.splice(place..place, unstable);
    explain_missing_call_sites(record, repeats, findings);
}

fn finding(record: &Record, repeats: &Repeats, between: &[&Threshold], range: Range) -> Finding {
    let thresholds: Vec<String> =
        between.iter().map(|threshold| threshold.describe(&range)).collect();
    let mut message = range.text();
    if !thresholds.is_empty() {
        message = format!("{message}, and {}", thresholds.join(" and "));
    }
    let mut hint = "make the test deterministic: check its seed, threads and time limits, and the \
                    state that an earlier run leaves"
        .to_owned();
    if !between.is_empty() {
        hint.push_str(&format!("; or allow {}", range.value(range.greatest)));
    }
    if repeats.asked.is_none() {
        hint.push_str("; `cargo memcheck --repeat 20` reports every figure that differs");
    }
    let space = range.space;
    Finding {
        space: Some(space),
        figure: Some(range.greatest),
        limit: between.first().map(|threshold| threshold.ceiling),
        baseline: between.iter().find_map(|threshold| threshold.then),
        sites: match range.metric.as_str() {
            "peak_allocated" => blame::at_peak(record, space),
            "retained" | "retained_again" => blame::retained(record, space),
            "allocations" | "most_allocations" | "most_allocated" => {
                blame::allocating(record, space)
            }
            _ => Vec::new(),
        },
        range: Some(range),
        ..Finding::new(Code::Unstable, message)
    }
    .hint(hint)
}

fn thresholds(
    record: &Record,
    (baseline, limits): (&Baseline, &Limits),
    repeats: &Repeats,
    range: &Range,
) -> Vec<Threshold> {
    let (space, metric, tolerance) = (range.space, range.metric.as_str(), limits.tolerance.value);
    let mut thresholds = Vec::new();
    let mut threshold = |code, name, ceiling, then, values: &[u64]| {
        let exceeding = values.iter().filter(|value| **value > ceiling).count();
        thresholds.push(Threshold { code, name, ceiling, then, exceeding, runs: values.len() });
    };
    let then = regression::comparable_figures(record, baseline, limits)
        .and_then(|figures| figures.0.get(&space)?.get(metric).copied());
    match metric {
        "peak_allocated" => {
            let limit_of_host = limits.max_host_peak.value.filter(|_| space == Space::Host);
            if let Some(limit) = limit_of_host {
                threshold(Code::PeakLimit, "`max_host_peak`", limit, None, &range.values);
            }
            if let Some(Bound::Bytes(Size(limit))) = limits.max_peak.value
                && !record.has_own_limits(space)
            {
                threshold(Code::PeakLimit, "`max_peak`", limit, None, &range.values);
            }
            if let Some(capacity) = limits.fits.value.filter(|_| space.is_device()) {
                threshold(Code::DoesNotFit, "`fits`", capacity.bytes(), None, &range.values);
            }
            if let Some(bytes) = then {
                let ceiling = tolerance.ceiling(bytes);
                threshold(Code::PeakRegression, BASELINE, ceiling, then, &range.values);
            }
        }
        "retained" => {
            let limit = limits.max_retained.value;
            // As in `retained_figure`: the built-in limit judges what a second round added.
            let built_in = limits.max_retained.source == Source::BuiltIn;
            let judged = repeats.values(space, |figure| {
                figure("retained_again").filter(|_| built_in).or_else(|| figure("retained"))
            });
            threshold(Code::Retained, "`max_retained`", limit, None, &judged);
        }
        "allocations" => {
            if let Some(count) = then {
                // A tolerance in bytes does not apply to counts.
                let ceiling = Tolerance { bytes: 0, ..tolerance }.ceiling(count);
                threshold(Code::AllocationsRegression, BASELINE, ceiling, then, &range.values);
            }
        }
        other => {
            let traffic = Traffic::ALL.into_iter().find(|traffic| traffic.figure() == other);
            if let Some((traffic, limit)) = traffic.and_then(|it| Some((it, it.limit(limits)?))) {
                let (code, name) = (traffic::code(traffic), traffic::name(traffic));
                threshold(code, name, limit, None, &range.values);
            }
            let Some((phase, figure)) = phase::split(other) else { return thresholds };
            let is_peak = figure == "peak_allocated";
            if let Some(&limit) = record.phase_limits.get(phase).filter(|_| is_peak) {
                threshold(Code::PeakLimit, "`phases`", limit, None, &range.values);
            }
            let code = if is_peak { Code::PeakRegression } else { Code::GrowthRegression };
            if let Some(bytes) = then {
                threshold(code, BASELINE, tolerance.ceiling(bytes), then, &range.values);
            }
        }
    }
    thresholds
}

fn explain_missing_call_sites(record: &Record, repeats: &Repeats, findings: &mut [Finding]) {
    if record.attribution.is_some() || repeats.asked.is_some() {
        return;
    }
    let others = findings.iter_mut().filter(|finding| finding.code != Code::Unstable);
    let is_unexplained =
        |finding: &&mut Finding| finding.code.is_about_memory() && finding.sites.is_empty();
    for finding in others.filter(is_unexplained) {
        finding.hint = Some(
            "the call sites are missing, because no run with call stacks measured the same \
             figures: the test is not deterministic"
                .to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use crate::judgement::baseline::{Figures, Holders};
    use crate::judgement::verdict::Verdict;
    use crate::limits::Layer;
    use crate::measurement::comparison;
    use crate::measurement::record::example::{GPU, armed, limits, record};
    use crate::measurement::record::{Metrics, SpaceRecord};

    fn measured(metrics: Metrics) -> Record {
        record(armed(metrics))
    }

    fn with_runs(mut first: Record, others: &[Record]) -> Record {
        for other in others {
            comparison::add(&mut first, comparison::compared(other));
        }
        first
    }

    fn kept(record: &Record) -> Baseline {
        Baseline::Found {
            figures: Figures::of(record),
            holders: Holders::of(record),
            facts: record.facts.clone(),
        }
    }

    fn judged(record: &Record, baseline: &Baseline, layer: Layer) -> Verdict {
        judge(record, baseline, &limits(layer), |code| code.default_level(false))
    }

    fn codes(record: &Record, baseline: &Baseline, layer: Layer) -> Vec<Code> {
        let verdict = judged(record, baseline, layer);
        verdict.findings.iter().map(|finding| finding.code).collect()
    }

    fn peak(bytes: u64) -> Record {
        measured(Metrics { peak_allocated: bytes, ..Metrics::default() })
    }

    #[test]
    fn only_findings_about_memory_that_have_no_call_sites_miss_them() {
        let repeated = with_runs(peak(1), &[peak(2)]);
        let without = Finding::new(Code::Leak, "grows");
        let with = Finding { sites: vec![Default::default()], ..without.clone() };
        let mut findings = [without, with, Finding::new(Code::TestFailed, "an error")];
        let repeats = repeated.repeats.clone().expect("two runs");
        explain_missing_call_sites(&repeated, &repeats, &mut findings);
        assert_eq!(findings.map(|finding| finding.hint.is_some()), [true, false, false]);
    }

    #[test]
    fn a_baseline_that_some_runs_exceed_is_unstable_and_one_that_all_exceed_a_regression() {
        let codes_of = |baseline: u64, tolerance: &str, runs: &[u64]| {
            let others: Vec<Record> = runs[1..].iter().map(|bytes| peak(*bytes)).collect();
            let layer = Layer { tolerance: tolerance.parse().ok(), ..Layer::default() };
            codes(&with_runs(peak(runs[0]), &others), &kept(&peak(baseline)), layer)
        };
        assert_eq!(codes_of(100, "0%", &[110, 100]), [Code::Unstable]);
        assert_eq!(codes_of(100, "0%", &[100, 110]), [Code::Unstable]);
        assert_eq!(codes_of(100, "0%", &[110, 120]), [Code::PeakRegression]);
        assert_eq!(codes_of(100, "10%", &[110, 100]), []);
        assert_eq!(codes_of(100, "10%", &[111, 100]), [Code::Unstable]);
        // One run with less is not an improvement if another has more.
        assert_eq!(codes_of(100, "0%", &[90, 110]), [Code::Unstable]);
        assert_eq!(codes_of(100, "0%", &[90, 95]), [Code::Improved]);
    }

    #[test]
    fn the_message_has_the_range_the_baseline_and_the_number_of_runs_beyond_it() {
        let run = with_runs(peak(2_048), &[peak(1_024), peak(2_048)]);
        let layer = Layer { tolerance: "64 B".parse().ok(), ..Layer::default() };
        let found = judged(&run, &kept(&peak(1_000)), layer).findings.remove(0);
        assert_eq!(
            found.message,
            "`peak_allocated` of cuda:0 is 1,024 B (1.00 KiB) to 2,048 B (2.00 KiB) in 3 runs, and \
             exceeds the baseline of 1,000 B (limit with its tolerance: 1,064 B (1.04 KiB)) in 2 \
             of them"
        );
        assert_eq!(
            (found.figure, found.limit, found.baseline),
            (Some(2_048), Some(1_064), Some(1_000))
        );
        let hint = found.hint.unwrap();
        assert!(hint.contains("or allow 2,048 B") && hint.contains(" --repeat 20`"), "{hint}");
    }

    #[test]
    fn a_baseline_that_cannot_be_compared_has_no_threshold() {
        let run = with_runs(peak(110), &[peak(100)]);
        let mut other = peak(105);
        other.facts.candle = "0.10.0".to_owned();
        let found = codes(&run, &kept(&other), Layer::default());
        assert_eq!(found, [Code::UncomparableBaseline]);
    }

    #[test]
    fn bytes_of_an_iteration_that_some_runs_exceed_are_unstable() {
        let layer = || Layer { max_allocated: Some(Size(5)), ..Layer::default() };
        let of = |most: u64| {
            let metrics = Metrics::default();
            let mut run = record(SpaceRecord { allocated_total: vec![1, most], ..armed(metrics) });
            run.limits = limits(layer());
            run
        };
        let found = |runs: [u64; 2]| {
            judged(&with_runs(of(runs[0]), &[of(runs[1])]), &Baseline::Off, layer()).findings
        };
        let unstable = found([9, 4]).remove(0);
        assert_eq!(unstable.code, Code::Unstable);
        assert!(unstable.message.contains("exceeds `max_allocated` of 5 B in 1 of them"));
        let codes = |runs| found(runs).iter().map(|it| it.code).collect::<Vec<_>>();
        assert_eq!(codes([9, 6]), [Code::AllocatedLimit]);
        assert_eq!(codes([5, 4]), []);
    }

    #[test]
    fn each_limit_has_its_threshold() {
        let most = |most: u64| {
            let mut run = record(SpaceRecord {
                allocations: vec![1, most],
                ..armed(Metrics { retained: most, allocations: most, ..Metrics::default() })
            });
            run.limits = limits(Layer { max_allocations: Some(5), ..Layer::default() });
            run
        };
        let run = with_runs(most(9), &[most(4)]);
        let retained = Layer { max_retained: Some(Size(5)), ..Layer::default() };
        assert_eq!(codes(&run, &Baseline::Off, retained), [Code::Unstable]);
        let retained = Layer { max_retained: Some(Size(9)), ..Layer::default() };
        assert!(codes(&run, &Baseline::Off, retained).is_empty());
        let both =
            Layer { max_retained: Some(Size(3)), max_allocations: Some(5), ..Layer::default() };
        assert_eq!(codes(&run, &Baseline::Off, both), [Code::Retained, Code::Unstable]);
        // A count has no tolerance in bytes.
        let baseline = kept(&most(6));
        let layer = Layer {
            max_retained: Some(Size(9)),
            tolerance: "64 KiB".parse().ok(),
            ..Layer::default()
        };
        assert_eq!(codes(&run, &baseline, layer), [Code::Unstable]);
        let fits = Layer { fits: "100 B".parse().ok(), ..Layer::default() };
        let run = with_runs(peak(101), &[peak(100)]);
        assert_eq!(codes(&run, &Baseline::Off, fits), [Code::Unstable]);
    }

    /// A run of a test that has the same metrics in each of these spaces.
    fn in_spaces(spaces: &[(Space, Metrics)], layer: &Layer) -> Record {
        Record {
            judged: spaces.iter().map(|(space, _)| *space).collect(),
            spaces: spaces.iter().map(|(space, metrics)| (*space, armed(*metrics))).collect(),
            limits: limits(layer.clone()),
            ..measured(Metrics::default())
        }
    }

    #[test]
    fn a_limit_that_all_runs_exceed_keeps_its_finding_beside_one_of_the_same_code() {
        let layer = Layer {
            max_peak: Some(Bound::Bytes(Size(5))),
            max_host_peak: Some(Size(8)),
            ..Layer::default()
        };
        let texts = |spaces: &[Space]| {
            let run = |bytes| {
                let metrics = Metrics { peak_allocated: bytes, ..Metrics::default() };
                let spaces = spaces.iter().map(|space| (*space, metrics));
                in_spaces(&spaces.collect::<Vec<_>>(), &layer)
            };
            let findings = judged(&with_runs(run(9), &[run(7)]), &Baseline::Off, layer.clone());
            let text = |found: Finding| format!("{}: {}", found.code, found.message);
            findings.findings.into_iter().map(text).collect::<Vec<_>>()
        };
        let of_host = "unstable: `peak_allocated` of host is 7 B to 9 B in 2 runs, and exceeds \
                       `max_host_peak` of 8 B in 1 of them";
        let on_the_host = "peak-limit: the peak in host is 9 B (limit 5 B)";
        assert_eq!(texts(&[Space::Host]), [on_the_host, of_host]);
        // `max_peak` is not about the host of a test on a GPU.
        let on_the_gpu = "peak-limit: the peak in cuda:0 is 9 B (limit 5 B)";
        assert_eq!(texts(&[GPU, Space::Host]), [on_the_gpu, of_host]);
    }

    #[test]
    fn small_blocks_have_their_own_range_unless_they_are_the_overhead_of_tensors() {
        let layer = Layer { max_retained: Some(Size(9)), ..Layer::default() };
        let spaces = |tensors, small| {
            let run = |tensors, small| {
                let retains = |retained| Metrics { retained, ..Metrics::default() };
                let host = (Space::Host, retains(tensors));
                in_spaces(&[host, (Space::HostSmall, retains(small))], &layer)
            };
            let runs = with_runs(run(tensors, small), &[run(0, 0)]);
            let found = judged(&runs, &Baseline::Off, layer.clone()).findings;
            assert!(found.iter().all(|found| found.code == Code::Unstable), "{found:?}");
            found.iter().filter_map(|found| found.space).collect::<Vec<_>>()
        };
        assert_eq!(spaces(100, 50), [Space::Host]);
        assert_eq!(spaces(99, 50), [Space::Host, Space::HostSmall]);
        assert_eq!(spaces(0, 50), [Space::HostSmall]);
    }

    #[test]
    fn bytes_of_a_second_round_are_judged_if_no_limit_was_set() {
        let again = |retained: u64, again: u64| {
            let metrics = Metrics { retained, ..Metrics::default() };
            record(SpaceRecord { retained_again: Some(again), ..armed(metrics) })
        };
        let added_nothing = with_runs(again(9, 0), &[again(5, 0)]);
        assert!(codes(&added_nothing, &Baseline::Off, Layer::default()).is_empty());
        let set = Layer { max_retained: Some(Size(7)), ..Layer::default() };
        assert_eq!(codes(&added_nothing, &Baseline::Off, set), [Code::Unstable]);
        let added = with_runs(again(9, 9), &[again(5, 0)]);
        assert_eq!(codes(&added, &Baseline::Off, Layer::default()), [Code::Unstable]);
    }

    #[test]
    fn if_repeats_were_asked_for_every_figure_that_differs_is_unstable() {
        let setup = |setup, growth| measured(Metrics { setup, growth, ..Metrics::default() });
        let mut run = setup(1, 0);
        run.repeats = Some(Repeats {
            asked: Some(2),
            runs: vec![comparison::figures(&run), comparison::figures(&setup(2, 3))],
        });
        let verdict = judged(&run, &Baseline::Off, Layer::default());
        let metric = |finding: &Finding| finding.range.as_ref().unwrap().metric.clone();
        let metrics: Vec<String> = verdict.findings.iter().map(metric).collect();
        assert_eq!(metrics, ["growth", "setup"]);
        let hint = verdict.findings[0].hint.as_deref().unwrap();
        assert!(!hint.contains("--repeat"), "{hint}");
    }
}
