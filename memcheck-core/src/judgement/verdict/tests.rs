//! Each rule with a case that fires it and a case that does not.

mod attributed;
mod fault_unsafe;
mod process;
mod regressed;
mod small;
mod stated;
mod unstable;

use std::collections::BTreeMap;

use super::*;
use crate::device::Family;
use crate::growth::survivors::Pattern;
use crate::judgement::baseline::{Figures, Holders};
use crate::limits::{Layer, Source};
use crate::measurement::attribution::builder::{self, grows};
use crate::measurement::record::example::{GPU, armed, limits, record};
use crate::measurement::record::{Outcome, RefusedAllocation};
use crate::size::Size;

pub(super) fn codes(record: &Record, baseline: &Baseline, layer: Layer) -> Vec<&'static str> {
    let verdict = judge(record, baseline, &limits(layer), |code| code.default_level(false));
    verdict.findings.iter().map(|finding| finding.code.name()).collect()
}

pub(super) fn found_with_baseline(
    record: &Record,
    baseline: &Baseline,
    layer: Layer,
) -> Vec<Finding> {
    judge(record, baseline, &limits(layer), |code| code.default_level(false)).findings
}

pub(super) fn kept(record: &Record) -> Baseline {
    Baseline::Found {
        figures: Figures::of(record),
        holders: Holders::of(record),
        facts: record.facts.clone(),
    }
}

#[test]
fn a_clean_run_with_its_own_baseline_passes() {
    let clean = record(armed(Metrics { peak_allocated: 9, setup: 4, ..Metrics::default() }));
    let verdict = judge(&clean, &kept(&clean), &clean.limits, |code| code.default_level(true));
    assert_eq!(verdict, Verdict { status: Status::Passed, findings: vec![], denied: vec![] });
}

#[test]
fn growth_above_its_limit_is_a_leak_with_its_blocks() {
    let group = builder::kept(500, [2; 10], grows(Pattern::Steady, 1_000));
    let measured = SpaceRecord {
        survivors: vec![group],
        ..armed(Metrics { growth: 1_000, ..Metrics::default() })
    };
    let leaky = record(measured);
    let strict = Layer { max_growth: Some(Size(999)), ..Layer::default() };
    let verdict = judge(&leaky, &Baseline::Off, &limits(strict), |code| code.default_level(false));
    assert_eq!(verdict.status, Status::Failed);
    let finding = &verdict.findings[0];
    assert_eq!(
        (finding.code, finding.bytes_per_iteration, finding.limit),
        (Code::Leak, Some(1_000), Some(999))
    );
    assert_eq!((finding.sites[0].count, finding.sites[0].bytes), (20, 10_000));
    assert!(
        codes(&leaky, &Baseline::Off, Layer { max_growth: Some(Size(1_000)), ..Layer::default() })
            .is_empty()
    );
}

#[test]
fn one_iteration_does_not_measure_growth_that_the_test_itself_limits() {
    let one = record(armed(Metrics::default()));
    let one = Record { iterations: 1, ..one };
    let strict = Layer { max_growth: Some(Size(0)), ..Layer::default() };
    let pool = Layer { max_reserved_growth: Some(Size(0)), ..Layer::default() };
    let iterations = |count| Layer { iterations: Some(count), ..Layer::default() };
    let found = |layers: &[(Source, Layer)]| {
        let layers = layers.iter().map(|(source, layer)| (source.clone(), layer));
        let limits = Limits::resolve(Family::Cuda, layers);
        let verdict = judge(&one, &Baseline::Off, &limits, |code| code.default_level(false));
        verdict.findings.first().map(|finding| finding.message.clone())
    };
    use Source::{Attribute, Default, Environment, Flag, Override};
    for (layers, name) in [
        ([(Attribute, strict.clone()), (Attribute, iterations(1))], "max_growth"),
        ([(Attribute, strict.clone()), (Override(1), iterations(1))], "max_growth"),
        ([(Default, iterations(1)), (Override(1), strict.clone())], "max_growth"),
        ([(Attribute, iterations(1)), (Attribute, pool)], "max_reserved_growth"),
    ] {
        let expected =
            format!("`{name}` limits growth, but one measured iteration cannot show growth");
        assert_eq!(found(&layers), Some(expected));
    }
    // A limit for many tests, or one iteration from a flag, does not make this test wrong.
    for layers in [
        [(Attribute, strict.clone()), (Flag, iterations(1))],
        [(Attribute, strict.clone()), (Environment, iterations(1))],
        [(Attribute, iterations(1)), (Flag, strict.clone())],
        [(Default, strict.clone()), (Attribute, iterations(1))],
    ] {
        assert_eq!(found(&layers), None, "{layers:?}");
    }
    assert_eq!(found(&[(Attribute, iterations(1))]), None, "the limit is built in");
}

#[test]
fn each_limit_fires_above_it_and_not_at_it() {
    let metrics = Metrics { peak_allocated: 100, retained: 7, ..Metrics::default() };
    // The greatest number in one iteration counts, not the median.
    let run = record(SpaceRecord {
        allocations: vec![1, 1, 3, 1],
        allocated_total: vec![64, 96, 64, 64],
        kept: Some(50),
        ..armed(metrics)
    });
    let at = |off: u64| Layer {
        max_kept: Some(Size(50 - off)),
        max_peak: Some(Size(100 - off).into()),
        max_retained: Some(Size(7 - off)),
        max_allocations: Some(3 - off),
        max_allocated: Some(Size(96 - off)),
        ..Layer::default()
    };
    assert!(codes(&run, &Baseline::Off, at(0)).is_empty());
    let all = ["kept-limit", "peak-limit", "retained", "allocations-limit", "allocated-limit"];
    assert_eq!(codes(&run, &Baseline::Off, at(1)), all);
}

#[test]
fn a_run_without_the_canary_or_with_lost_events_is_not_measured() {
    let unarmed = record(SpaceRecord::default());
    let verdict =
        judge(&unarmed, &Baseline::Off, &unarmed.limits, |code| code.default_level(false));
    assert_eq!(verdict.status, Status::NotMeasured);
    let mut lossy = record(armed(Metrics::default()));
    lossy.lost_events = 1;
    assert_eq!(codes(&lossy, &Baseline::Off, Layer::default()), ["not-measured"]);
    lossy.lost_events = 0;
    lossy.unsupported_calls = vec!["cuFoo".into()];
    assert_eq!(codes(&lossy, &Baseline::Off, Layer::default()), ["not-measured"]);
    lossy.unsupported_calls.clear();
    lossy.judged.clear();
    assert_eq!(codes(&lossy, &Baseline::Off, Layer::default()), ["not-measured"]);
}

#[test]
fn lost_events_have_the_cause_of_their_loss() {
    let messages = |lost, of_unknown| -> Vec<String> {
        let mut run = record(armed(Metrics::default()));
        (run.lost_events, run.events_of_unknown_gpus) = (lost, of_unknown);
        let verdict = judge(&run, &Baseline::Off, &run.limits, |code| code.default_level(false));
        verdict.findings.into_iter().map(|finding| finding.message).collect()
    };
    let full = "3 events were lost, because the ledger was full";
    let unknown = "1 event was lost, because the GPU is not";
    assert_eq!(messages(3, 0), [full]);
    let only = messages(1, 1);
    assert!(only.len() == 1 && only[0].starts_with(unknown), "{only:?}");
    let both = messages(4, 1);
    assert!(both.len() == 2 && both[0] == full && both[1].starts_with(unknown), "{both:?}");
}

#[test]
fn a_body_that_fails_is_test_failed_and_its_leftovers_are_not_judged() {
    let mut run = record(armed(Metrics { retained: 7, ..Metrics::default() }));
    run.outcome = Outcome::Failed { error: "boom".into() };
    assert_eq!(codes(&run, &Baseline::Missing, Layer::default()), ["test-failed"]);
    run.outcome = Outcome::Panicked { message: "boom".into() };
    assert_eq!(codes(&run, &Baseline::Missing, Layer::default()), ["test-failed"]);
    run.should_panic = Some(String::new());
    assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["retained"]);
    run.should_panic = Some("bang".into());
    assert_eq!(codes(&run, &Baseline::Off, Layer::default())[0], "test-failed");
    run.should_panic = Some("oo".into());
    run.outcome = Outcome::Returned;
    assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["test-failed"]);
}

#[test]
fn a_run_with_unfinished_iterations_is_not_measured() {
    let mut run = record(armed(Metrics::default()));
    run.iterations = 3;
    assert_eq!(codes(&run, &Baseline::Missing, Layer::default()), ["not-measured"]);
    // A body that never iterates has no growth to judge, unless its attribute limits it.
    run.iterations = 0;
    run.iterated = false;
    assert!(codes(&run, &Baseline::Off, Layer::default()).is_empty());
    let asked = [
        Layer { max_growth: Some(Size(0)), ..Layer::default() },
        Layer { max_allocations: Some(9), ..Layer::default() },
        Layer { max_reserved_growth: Some(Size(0)), ..Layer::default() },
    ];
    for asked in asked {
        assert_eq!(codes(&run, &Baseline::Off, asked.clone()), ["not-measured"], "{asked:?}");
        // These sources apply to many tests, and some tests do not iterate.
        for source in [Source::Flag, Source::Environment, Source::Override(1), Source::Default] {
            let limits = Limits::resolve(Family::Cuda, [(source, &asked)]);
            let verdict = judge(&run, &Baseline::Off, &limits, |code| code.default_level(false));
            assert_eq!(verdict.status, Status::Passed, "{asked:?}");
        }
    }
}

#[test]
fn a_limit_on_a_pool_that_was_not_read_is_not_measured() {
    let asked = Layer { max_reserved_growth: Some(Size(0)), ..Layer::default() };
    let with = |reserved: &[u64], device_used: &[u64]| {
        record(SpaceRecord {
            reserved: reserved.to_vec(),
            device_used: device_used.to_vec(),
            ..armed(Metrics::default())
        })
    };
    for run in [with(&[], &[]), with(&[7; 9], &[]), with(&[], &[7; 9]), with(&[7], &[7; 9])] {
        assert_eq!(codes(&run, &Baseline::Off, asked.clone()), ["not-measured"]);
        assert!(codes(&run, &Baseline::Off, Layer::default()).is_empty());
        let by_flag = Limits::resolve(Family::Cuda, [(Source::Flag, &asked)]);
        let verdict = judge(&run, &Baseline::Off, &by_flag, |code| code.default_level(false));
        assert_eq!(verdict.status, Status::NotMeasured, "the limit is asked for by whomever");
    }
    for run in [with(&[7; 10], &[]), with(&[], &[7; 10])] {
        assert!(codes(&run, &Baseline::Off, asked.clone()).is_empty());
    }
    // A second device is not watched, and the host has no pool.
    let mut two = with(&[7; 10], &[]);
    two.judged.push(Space::Cuda(1));
    two.spaces.insert(Space::Cuda(1), armed(Metrics::default()));
    assert!(codes(&two, &Baseline::Off, asked.clone()).is_empty());
    let mut host = with(&[], &[]);
    host.judged = vec![Space::Host];
    host.spaces = BTreeMap::from([(Space::Host, armed(Metrics::default()))]);
    assert!(codes(&host, &Baseline::Off, asked).is_empty());
}

#[test]
fn a_refused_allocation_is_out_of_memory_only_if_the_body_fails() {
    let refused = |last| Some(RefusedAllocation { requested: 64, live: 1, host: 0, last });
    let mut run = record(SpaceRecord { refused: refused(true), ..armed(Metrics::default()) });
    assert!(codes(&run, &Baseline::Off, Layer::default()).is_empty());
    // The error text need not mention memory if no allocation followed the refusal.
    run.outcome = Outcome::Failed { error: "the model does not load".into() };
    assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["out-of-memory"]);
    // The body survived the refusal, so only an out-of-memory error blames it.
    run.spaces.get_mut(&GPU).unwrap().refused = refused(false);
    assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["test-failed"]);
    run.outcome = Outcome::Panicked { message: "assertion failed: batch >= 8".into() };
    assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["test-failed"]);
    for expected in [
        "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")",
        "Out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
    ] {
        run.outcome = Outcome::Panicked { message: expected.into() };
        assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["out-of-memory"], "{expected}");
    }
    assert!(!ended::says_out_of_memory("no such file\n   0: app::retry_after_out_of_memory"));
}

#[test]
fn a_figure_above_its_baseline_is_a_regression_and_below_it_an_improvement() {
    let then =
        record(armed(Metrics { peak_allocated: 1_000, allocations: 10, ..Metrics::default() }));
    let now = record(armed(Metrics {
        peak_allocated: 1_001,
        allocations: 11,
        growth: 1,
        setup: 5,
        ..Metrics::default()
    }));
    assert_eq!(
        codes(&now, &kept(&then), Layer::default()),
        ["allocations-regression", "growth-regression", "peak-regression"]
    );
    assert_eq!(codes(&then, &kept(&now), Layer::default()), ["improved"; 4]);
    let wide = Layer { tolerance: Some("10% | 8 B".parse().unwrap()), ..Layer::default() };
    assert!(codes(&now, &kept(&then), wide).is_empty());
}

#[test]
fn baselines_that_cannot_be_compared_never_pass_in_ci() {
    let run = record(armed(Metrics::default()));
    let mut other = run.clone();
    other.facts.candle = "0.10.0".into();
    let mut narrower = run.clone();
    narrower.facts.dtype = Some("bf16".into());
    let mut more = run.clone();
    more.judged.push(Space::Cuda(1));
    more.spaces.insert(Space::Cuda(1), armed(Metrics::default()));
    for (baseline, code) in [
        (Baseline::Missing, "missing-baseline"),
        (Baseline::Corrupt("torn".into()), "corrupt-baseline"),
        (kept(&other), "uncomparable-baseline"),
        (kept(&narrower), "uncomparable-baseline"),
        (kept(&more), "uncomparable-baseline"),
    ] {
        assert_eq!(codes(&run, &baseline, Layer::default()), [code]);
        let verdict = judge(&run, &baseline, &run.limits, |code| code.default_level(true));
        assert_eq!(verdict.status, Status::NeedsReview, "{code}");
        let allowed = judge(&run, &baseline, &run.limits, |_| Level::Allow);
        assert_eq!(allowed.status, Status::Passed, "{code}");
    }
}

#[test]
fn a_run_that_was_not_measured_has_no_bookkeeping_findings() {
    let figures = Metrics { peak_allocated: 9, ..Metrics::default() };
    let then = record(armed(Metrics { peak_allocated: 10, ..figures }));
    let mut blind = record(armed(figures));
    blind.spaces.get_mut(&GPU).unwrap().armed = false;
    for baseline in [Baseline::Missing, Baseline::Corrupt("torn".into()), kept(&then)] {
        let verdict = judge(&blind, &baseline, &blind.limits, |code| code.default_level(true));
        let found: Vec<Code> = verdict.findings.iter().map(|finding| finding.code).collect();
        assert_eq!((found, verdict.denied), (vec![Code::NotMeasured], vec![]), "{baseline:?}");
        assert_eq!(verdict.status, Status::NotMeasured);
        // The same run with its canary seen has a finding about the baseline.
        let mut seen = blind.clone();
        seen.spaces.get_mut(&GPU).unwrap().armed = true;
        assert_eq!(codes(&seen, &baseline, Layer::default()).len(), 1, "{baseline:?}");
    }
    // A regression is a measured finding, so it is reported in addition.
    let lower = record(armed(Metrics { peak_allocated: 8, ..figures }));
    let found = codes(&blind, &kept(&lower), Layer::default());
    assert_eq!(found, ["not-measured", "peak-regression"]);
}

#[test]
fn a_backtrace_is_not_part_of_the_message() {
    assert_eq!(ended::gist("boom\n   0: candle_core::error::Error::bt\n   1: x"), "boom");
    assert_eq!(
        ended::gist("boom\n\nCaused by:\n    0: a\n    1: b"),
        "boom\n\nCaused by:\n    0: a\n    1: b"
    );
    assert_eq!(ended::gist("boom\n\nStack backtrace:\n   0: x"), "boom");
    let frame = "\n   1: app::forward\n             at ./src/model.rs:42:9";
    let error = format!("boom\n   0: candle_core::error::Error::bt{frame}");
    let mut run = record(armed(Metrics::default()));
    run.outcome = Outcome::Failed { error };
    let verdict = judge(&run, &Baseline::Off, &run.limits, |code| code.default_level(false));
    let message = &verdict.findings[0].message;
    assert_eq!(message, "the body returned an error: boom\nat src/model.rs:42 (app::forward)");
}

#[test]
fn reserved_bytes_that_rise_with_confidence_are_growth_above_their_limit() {
    let rising: Vec<u64> = (0..10).map(|i| (32 + 2 * i) << 20).collect();
    let measured = SpaceRecord { reserved: rising.clone(), ..armed(Metrics::default()) };
    let finding = growth::pool_growth(GPU, &measured, Some(0)).expect("growth");
    assert_eq!(finding.code, Code::GrowthLimit);
    assert_eq!((finding.bytes_per_iteration, finding.limit), (Some(2 << 20), Some(0)));
    assert_eq!(
        finding.message,
        "the pool's reserved bytes of cuda:0 grow by 2,097,152 B (2.00 MiB) per iteration \
         (Theil–Sen; Mann–Kendall confidence 99.9 %; limit 0 B)"
    );
    assert_eq!(growth::pool_growth(GPU, &measured, Some(2 << 20)), None);
    assert_eq!(growth::pool_growth(GPU, &measured, None), None);
    let mut simulated = record(measured.clone());
    simulated.driver.simulated = true;
    let asked = Layer { max_reserved_growth: Some(Size(0)), ..Layer::default() };
    let expected =
        judge(&simulated, &Baseline::Off, &limits(asked), |code| code.default_level(false));
    let message = &expected.findings[0].message;
    assert!(message.ends_with("on a simulated device this is an estimate"), "{message}");
    let by_nvml = SpaceRecord { device_used: rising, ..armed(Metrics::default()) };
    let finding = growth::pool_growth(GPU, &by_nvml, Some(0)).expect("growth");
    assert!(finding.message.starts_with("the used bytes (NVML) of cuda:0 grow"));
}

#[test]
fn reserved_bytes_that_fill_up_or_oscillate_do_not_grow() {
    for series in [
        vec![],
        vec![5],
        vec![1, 2, 3],
        vec![32, 64, 64, 64, 64, 64, 64, 64, 64, 64],
        vec![10, 30, 20, 40, 10, 30, 20, 40, 30, 20],
        vec![90, 80, 70, 60, 50, 40, 30, 20, 10, 0],
    ] {
        let measured = SpaceRecord { reserved: series, ..armed(Metrics::default()) };
        assert_eq!(growth::pool_growth(GPU, &measured, Some(0)), None, "{:?}", measured.reserved);
    }
}

#[test]
fn memory_that_is_allocated_once_in_a_process_is_retained_only_above_a_limit_that_was_set() {
    let left = |again| {
        let metrics = Metrics { retained: 4_096, ..Metrics::default() };
        record(SpaceRecord { retained_again: again, ..armed(metrics) })
    };
    let set = Layer { max_retained: Some(Size(0)), ..Layer::default() };
    for (again, layer, code) in [
        (Some(0), Layer::default(), None),
        (Some(0), set.clone(), Some("retained")),
        (Some(4_096), Layer::default(), Some("retained")),
        (None, Layer::default(), Some("retained")),
    ] {
        let found = codes(&left(again), &Baseline::Off, layer);
        assert_eq!(found, Vec::from_iter(code), "{again:?}");
    }
    assert!(left(Some(0)).holds_once() && !left(Some(1)).holds_once() && !left(None).holds_once());
    let partly = judge(&left(Some(1_096)), &Baseline::Off, &limits(Layer::default()), |code| {
        code.default_level(true)
    });
    let message = &partly.findings[0].message;
    assert!(message.ends_with("; the first round left 3,000 B (2.93 KiB) more"), "{message}");
}

#[test]
fn unknown_values_are_a_finding_only_if_the_user_wants_to_know() {
    use crate::measurement::unknown_reads::{ReadSite, UnknownReads};
    use crate::values::Contents;
    let site = ReadSite { at: Some("src/x.rs:12".into()), element: Some("f32".into()), reads: 2 };
    let values = UnknownReads { reads: 2, bytes: 8, sites: vec![site], ..UnknownReads::default() };
    let known = record(armed(Metrics::default()));
    let unknown = Record { values: Some(values), ..known.clone() };
    let strict = || Layer { strict_values: Some(true), ..Layer::default() };
    assert!(codes(&unknown, &Baseline::Off, Layer::default()).is_empty());
    assert!(codes(&known, &Baseline::Off, strict()).is_empty());
    let never = Layer { values: Some(Contents::Never), ..strict() };
    for (layer, step) in [(strict(), "raise `values`"), (never, "`values` is \"never\"")] {
        let verdict =
            judge(&unknown, &Baseline::Missing, &limits(layer), |code| code.default_level(true));
        assert_eq!(verdict.status, Status::NotMeasured);
        let [finding] = verdict.findings.try_into().expect("one finding");
        let message =
            "the body read unknown values of device memory 2 times, as zeros: at src/x.rs:12 (f32)";
        assert_eq!(finding.message, message);
        assert!(finding.hint.unwrap().starts_with(step));
    }
}
