//! The parts of a finding besides its code: space, figure, limit, message and hint.

use super::*;
use crate::growth::lifetimes::Open;
use crate::growth::survivors::{Group, Growth};
use crate::judgement::finding::TABLE;
use crate::measurement::attribution::builder::{Run, kept as blocks, once, steady};
use crate::measurement::record::Followed;

fn found(record: &Record, layer: Layer) -> Vec<Finding> {
    found_with_baseline(record, &Baseline::Off, layer)
}

fn one(record: &Record, layer: Layer) -> Finding {
    let [finding] = found(record, layer).try_into().expect("one finding");
    finding
}

fn grows_by(growth: Growth) -> Record {
    record(SpaceRecord { growth, ..armed(Metrics::default()) })
}

fn at_most(bytes: u64) -> Layer {
    Layer { max_growth: Some(Size(bytes)), ..Layer::default() }
}

#[test]
fn a_finding_states_its_space_its_figure_and_its_limit() {
    let metrics = Metrics { peak_allocated: 100, retained: 7, ..Metrics::default() };
    let run = record(SpaceRecord {
        allocations: vec![3; 10],
        allocated_total: vec![2_048; 10],
        kept: Some(90),
        ..armed(metrics)
    });
    let layer = Layer {
        max_kept: Some(Size(89)),
        max_peak: Some(Size(99).into()),
        max_retained: Some(Size(6)),
        max_allocations: Some(2),
        max_allocated: Some(Size(2_047)),
        ..Layer::default()
    };
    let stated: Vec<_> = found(&run, layer)
        .into_iter()
        .map(|found| (found.code, found.space, found.figure, found.limit, found.message))
        .collect();
    let message = |text: &str| text.to_owned();
    assert_eq!(
        stated,
        [
            (
                Code::KeptLimit,
                Some(GPU),
                Some(90),
                Some(89),
                message(
                    "blocks of earlier iterations hold up to 90 B in cuda:0 (limit 89 B of \
                     `max_kept`), in 10 iterations"
                )
            ),
            (
                Code::PeakLimit,
                Some(GPU),
                Some(100),
                Some(99),
                message("the peak in cuda:0 is 100 B (limit 99 B)")
            ),
            (
                Code::Retained,
                Some(GPU),
                Some(7),
                Some(6),
                message("7 B are live in cuda:0 after the body returned (limit 6 B)")
            ),
            (
                Code::AllocationsLimit,
                Some(GPU),
                Some(3),
                Some(2),
                message("an iteration makes 3 allocations in cuda:0 (limit 2)")
            ),
            (
                Code::AllocatedLimit,
                Some(GPU),
                Some(2_048),
                Some(2_047),
                message(
                    "an iteration allocates 2,048 B (2.00 KiB) in cuda:0 (limit 2,047 B (2.00 KiB))"
                )
            ),
        ]
    );
}

#[test]
fn a_peak_above_its_limit_has_the_lines_that_hold_it() {
    use crate::measurement::attribution::{Holder, HolderKind, Peak};
    let mut run = Run::default().place(&[], once(60, 0)).record();
    let holders = vec![Holder { place: 0, kind: HolderKind::Activations, bytes: 60, count: 1 }];
    let peak = Peak { bytes: 60, iteration: 1, holders, ..Peak::default() };
    run.attribution.as_mut().unwrap().peaks.insert(GPU, peak);
    run.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated = 60;
    let finding = one(&run, Layer { max_peak: Some(Size(59).into()), ..Layer::default() });
    assert_eq!((finding.sites[0].line, finding.sites[0].bytes), (Some(1), 60));
    // The host has a limit of its own.
    let peak = run.attribution.as_ref().unwrap().peaks[&GPU].clone();
    let attribution = run.attribution.as_mut().unwrap();
    attribution.peaks.insert(Space::Host, peak);
    attribution.places[0].space = Space::Host;
    run.spaces.insert(Space::Host, run.spaces[&GPU].clone());
    run.judged.push(Space::Host);
    let finding = one(&run, Layer { max_host_peak: Some(Size(59)), ..Layer::default() });
    assert_eq!((finding.figure, finding.space), (Some(60), Some(Space::Host)));
    assert_eq!((finding.sites[0].line, finding.sites[0].bytes), (Some(1), 60));
}

#[test]
fn a_leak_states_which_blocks_survive() {
    let message_of = |run: Run| {
        let finding = one(&run.record(), at_most(0));
        assert_eq!((finding.code, finding.space, finding.limit), (Code::Leak, Some(GPU), Some(0)));
        finding.message
    };
    let one_size = blocks(500, [2; 10], grows(Pattern::Steady, 1_000));
    let message = message_of(Run::default().place(&[], one_size.clone()));
    assert!(
        message.ends_with(": 20 blocks from the 10 measured iterations are still live"),
        "{message}"
    );
    let single = blocks(500, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], grows(Pattern::Irregular, 50));
    let message = message_of(Run::default().place(&[], single));
    assert!(
        message.ends_with(": 1 block from the 10 measured iterations is still live"),
        "{message}"
    );
    let later = Group { skipped: Some(18), ..one_size.clone() };
    let message = message_of(Run::default().place(&[], later));
    assert!(
        message.ends_with(": 20 blocks from measured iterations 19 to 28 are still live"),
        "{message}"
    );
    let long = Group { epoch: Some(128), ..one_size.clone() };
    let message = message_of(Run::default().place(&[], long));
    assert!(message.ends_with("from the 1,280 measured iterations are still live"), "{message}");
    let message = message_of(Run::default().place(&[], one_size).unplaced(steady(300)));
    assert!(
        message.ends_with(": 30 blocks from the 10 measured iterations are still live"),
        "{message}"
    );
    let enlarged = builder::enlarged(64);
    let message = message_of(Run::default().place(&[], enlarged.clone()));
    assert!(message.ends_with(": buffers are replaced by larger ones"), "{message}");
    let message = message_of(Run::default().place(&[], enlarged).unplaced(steady(300)));
    assert!(
        message.contains(" blocks from the 10 measured iterations are still live"),
        "{message}"
    );
}

#[test]
fn a_leak_states_its_iterations_and_whether_its_rate_is_complete() {
    let leak = |growth| {
        let mut run = Run::default().unplaced(steady(64)).record();
        run.spaces.get_mut(&GPU).unwrap().growth = growth;
        let finding = one(&run, at_most(0));
        (finding.message, finding.longer_run)
    };
    let found = |whole| Growth::Found { whole, exact: true, iterations: 44 };
    let all = "cuda:0 grows by 64 B per iteration (limit 0 B): 10 blocks from the 10 measured \
               iterations are still live";
    assert_eq!(leak(found(true)), (all.to_owned(), None), "there is no longer run");
    assert_eq!(leak(found(false)), (all.replace("by 64", "by at least 64"), None));
}

#[test]
fn a_leak_that_was_cut_short_states_the_reason() {
    let message = |decided, ended: Option<&str>| {
        let mut run = Run::default().unplaced(steady(64)).record();
        let growth = Growth::Found { whole: true, exact: true, iterations: 35 };
        run.spaces.get_mut(&GPU).unwrap().growth = growth;
        run.followed = Some(Followed {
            iterations: 33,
            seconds: 10.0,
            decided,
            disturbed: false,
            ended: ended.map(str::to_owned),
        });
        one(&run, at_most(0)).longer_run.unwrap()
    };
    let reason = "there was no time for further iterations";
    let cut = message(false, Some(reason));
    assert!(cut.ends_with(&format!("grows in iteration 35, the last, because {reason}")), "{cut}");
    for all in [message(true, Some(reason)), message(false, None)] {
        assert_eq!(all, "a longer run confirms the growth: memory still grows in iteration 35");
    }
}

#[test]
fn frees_that_the_driver_refused_are_the_hint_of_a_leak_and_of_the_error_of_the_next_call() {
    let hint_of = |number| {
        let run = Run::default().unplaced(steady(64)).failed_frees(number).record();
        one(&run, at_most(0)).hint
    };
    assert!(!hint_of(0).unwrap_or_default().contains("refused"));
    let refused = hint_of(2).unwrap();
    assert!(refused.starts_with("the driver refused 2 frees"));

    let ended_with = |error: &str, number| {
        let mut run = Run::default().failed_frees(number).record();
        run.outcome = Outcome::Failed { error: error.to_owned() };
        one(&run, at_most(0)).hint
    };
    let error = "DriverError(CUDA_ERROR_INVALID_CONTEXT, \"invalid device context\")";
    assert_eq!(ended_with(error, 2), Some(refused));
    assert_eq!((ended_with(error, 0), ended_with("boom", 2)), (None, None));
}

#[test]
fn undecided_growth_states_its_bytes_and_its_course() {
    for (open, what) in [
        (Open::Slows, "they rose more and more slowly"),
        (Open::Moves, "they rose and fell"),
        (Open::GoesOn, "they kept rising"),
        (Open::Rare, "they rose in only one or two iterations"),
    ] {
        let run = grows_by(Growth::Undecided { open, bytes: 1_000, iterations: 12 });
        let finding = one(&run, at_most(99));
        assert_eq!(
            (finding.code, finding.space, finding.figure, finding.limit),
            (Code::Undecided, Some(GPU), Some(1_000), Some(99))
        );
        assert!(finding.message.contains(&format!("{what} for 12 iterations")), "{finding:?}");
        // The mean rate of 100 B is within this limit, so it does not matter if it is growth.
        assert!(found(&run, at_most(100)).is_empty());
    }
    let finding = one(&grows_by(Growth::Unknown), at_most(99));
    assert_eq!(
        (finding.code, finding.space, finding.figure, finding.limit),
        (Code::Undecided, Some(GPU), None, Some(99))
    );
    let mut failed = grows_by(Growth::Unknown);
    failed.outcome = Outcome::Failed { error: "boom".into() };
    assert_eq!(codes(&failed, &Baseline::Off, Layer::default()), ["test-failed"]);
}

#[test]
fn undecided_growth_of_a_body_that_fails_states_its_error() {
    let open = Growth::Undecided { open: Open::Slows, bytes: 1_000, iterations: 29 };
    let ended_with = |reason: &str| {
        let mut run = grows_by(open);
        run.followed = Some(Followed {
            iterations: 27,
            seconds: 0.1,
            decided: false,
            disturbed: false,
            ended: Some(reason.to_owned()),
        });
        let finding = one(&run, at_most(9));
        (finding.message, finding.hint.unwrap())
    };
    let (message, hint) = ended_with("the body returned an error: no data");
    let reason = "before this was decided, because the body returned an error: no data";
    assert!(message.ends_with(reason), "{message}");
    assert!(!hint.contains("max_iterations"), "{hint}");
    let (_, hint) = ended_with("there was no time for further iterations");
    assert!(hint.contains("`evidence`"), "{hint}");
}

#[test]
fn growth_of_the_pool_states_its_rate() {
    let reserved = (0..10).map(|at| at << 20).collect();
    let measured = SpaceRecord { reserved, ..armed(Metrics::default()) };
    let finding = growth::pool_growth(GPU, &measured, Some(5)).unwrap();
    assert_eq!(
        (finding.space, finding.bytes_per_iteration, finding.limit),
        (Some(GPU), Some(1 << 20), Some(5))
    );
}

#[test]
fn a_refused_allocation_states_what_it_needed() {
    let refused = Some(RefusedAllocation { requested: 30, live: 60, host: 0, last: true });
    let mut run = record(SpaceRecord { refused, ..armed(Metrics::default()) });
    run.outcome = Outcome::Failed { error: "CUDA_ERROR_OUT_OF_MEMORY".into() };
    run.capacities.insert(GPU, 100);
    let finding = one(&run, Layer::default());
    assert_eq!(
        (finding.code, finding.space, finding.figure, finding.limit),
        (Code::OutOfMemory, Some(GPU), Some(90), None)
    );
    let fits = |capacity: &str| Layer { fits: Some(capacity.parse().unwrap()), ..Layer::default() };
    let finding = one(&run, fits("80 B"));
    assert_eq!(
        (finding.code, finding.space, finding.figure, finding.limit),
        (Code::DoesNotFit, Some(GPU), Some(90), Some(80))
    );
    assert!(finding.message.contains("the test must fit into 80 B; the body"), "{finding:?}");
    let peak = record(armed(Metrics { peak_allocated: 1 << 40, ..Metrics::default() }));
    let finding = one(&peak, fits("rtx4090"));
    let card = "the test must fit into rtx4090, 25,382,879,232 B (23.6 GiB)";
    assert!(finding.message.ends_with(card), "{finding:?}");
}

#[test]
fn a_regression_states_both_figures_and_the_tolerated_one() {
    let metrics = Metrics { peak_allocated: 1_000, allocations: 10, ..Metrics::default() };
    let then = record(armed(metrics));
    let metrics =
        Metrics { peak_allocated: 1_200, allocations: 30, growth: 8, ..Metrics::default() };
    let now = record(armed(metrics));
    let layer = Layer { tolerance: Some("10%".parse().unwrap()), ..at_most(9) };
    let stated = |finding: Finding| {
        let Finding { code, space, figure, bytes_per_iteration, limit, baseline, .. } = finding;
        assert_eq!(space, Some(GPU));
        (code, figure, bytes_per_iteration, limit, baseline)
    };
    let findings = found_with_baseline(&now, &kept(&then), layer.clone());
    let messages: Vec<_> = findings.iter().map(|finding| finding.message.clone()).collect();
    assert_eq!(
        messages,
        [
            "`allocations` of cuda:0 was 10, is 30 (+20)",
            "`growth` of cuda:0 was 0 B, is 8 B (+8 B)",
            "`peak_allocated` of cuda:0 was 1,000 B, is 1,200 B (1.17 KiB) (+200 B)",
        ]
    );
    assert!(findings.iter().all(|finding| finding.hint.is_none()), "{findings:?}");
    assert_eq!(
        findings.into_iter().map(stated).collect::<Vec<_>>(),
        [
            (Code::AllocationsRegression, Some(30), None, Some(11), Some(10)),
            (Code::GrowthRegression, Some(8), Some(8), Some(0), Some(0)),
            (Code::PeakRegression, Some(1_200), None, Some(1_100), Some(1_000)),
        ]
    );
    let lower = found_with_baseline(&then, &kept(&now), layer).remove(0);
    assert_eq!(lower.message, "`allocations` of cuda:0 was 30, is 10 (-20)");
    assert_eq!(stated(lower), (Code::Improved, Some(10), None, None, Some(30)));
}

#[test]
fn a_tolerance_in_bytes_does_not_raise_the_limit_of_a_count() {
    let run_with = |allocations| record(armed(Metrics { allocations, ..Metrics::default() }));
    let layer = Layer { tolerance: Some("8 B".parse().unwrap()), ..Layer::default() };
    let [finding] = found_with_baseline(&run_with(11), &kept(&run_with(10)), layer)
        .try_into()
        .expect("one finding");
    assert_eq!((finding.code, finding.limit), (Code::AllocationsRegression, Some(10)));
}

#[test]
fn figures_that_cannot_be_compared_are_named() {
    let run = record(armed(Metrics::default()));
    let mut more = run.clone();
    more.judged.push(Space::Cuda(1));
    more.spaces.insert(Space::Cuda(1), armed(Metrics::default()));
    let message = |now: &Record, then: &Record| {
        let finding = found_with_baseline(now, &kept(then), Layer::default()).remove(0);
        assert_eq!(finding.code, Code::UncomparableBaseline);
        finding.message
    };
    let (lacks, has) = (message(&more, &run), message(&run, &more));
    assert!(lacks.starts_with("the baseline lacks `") && lacks.ends_with("of cuda:1"), "{lacks}");
    let ending = "of cuda:1, which the run did not measure";
    assert!(has.starts_with("the baseline has `") && has.ends_with(ending), "{has}");
}

#[test]
fn a_failed_instrument_is_reported_with_its_remedy() {
    let mut run = record(SpaceRecord::default());
    run.judged = vec![GPU, Space::Host];
    run.spaces.insert(Space::Host, SpaceRecord::default());
    let findings = found(&run, Layer::default());
    let spaces: Vec<_> = findings.iter().map(|finding| finding.space).collect();
    assert_eq!(spaces, [Some(GPU), Some(Space::Host)]);
    let hint = |at: usize| findings[at].hint.as_deref().unwrap();
    assert!(hint(0).contains("CUDA") && hint(1).contains("#[global_allocator]"), "{findings:?}");
    let finding = unwritten("baseline", "no space left on device");
    assert_eq!(finding.code, Code::NotMeasured);
    let message = "the pending baseline could not be written: no space left on device";
    assert_eq!(finding.message, message);
}

#[test]
fn figures_can_become_the_baseline_unless_a_limit_is_exceeded() {
    let is_kept = |codes: &[Code]| {
        let findings: Vec<_> = codes.iter().map(|&code| Finding::new(code, "")).collect();
        is_worth_keeping(&findings)
    };
    assert!(is_kept(&[]));
    let kept: Vec<_> =
        TABLE.iter().filter(|row| is_kept(&[row.code])).map(|row| row.name).collect();
    assert_eq!(
        kept,
        [
            "peak-regression",
            "allocations-regression",
            "growth-regression",
            "missing-baseline",
            "uncomparable-baseline",
            "corrupt-baseline",
            "stale-baseline",
            "unmatched-override",
            "improved",
            "undecided",
            "not-built",
        ]
    );
    assert!(!is_kept(&[Code::PeakRegression, Code::Leak]));
}
