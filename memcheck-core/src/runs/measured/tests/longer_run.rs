//! The note about a longer run whose measured iterations have other figures than the first run.

use super::*;
use crate::bound::Bound;

/// The report of a test on the host, with the live bytes after each iteration.
fn on_the_host(host: [u64; 3], small: [u64; 3]) -> Seen {
    let live = |bytes: [u64; 3]| SpaceRecord { allocated: bytes.to_vec(), ..undecided() };
    let mut report = report(undecided());
    report.record.judged = vec![Space::Host, Space::HostSmall];
    report.record.spaces = [(Space::Host, live(host)), (Space::HostSmall, live(small))].into();
    report
}

#[test]
fn the_note_about_a_longer_run_has_the_figures_that_moved_and_further_runs_compare_them() {
    let first = on_the_host([4_096, 0, 0], [9, 9, 9]);
    let decided = |second: Seen| {
        let merged = merge(Stage::Decide, &first, Some(second));
        let runs_again = needed_by(Stage::Compare, Explain::Failed, &merged).is_some();
        (merged.record.notes.clone(), runs_again, merged)
    };
    let (notes, runs_again, _) = decided(first.clone());
    assert_eq!((notes, runs_again), (Vec::new(), false), "the figures are the same");

    let (notes, runs_again, merged) = decided(on_the_host([4_096, 1_024, 1_024], [9, 9, 9]));
    assert_eq!(
        notes,
        ["the longer run measured other figures, so this test is not deterministic: live bytes \
          of host after iteration 2 (and after 1 other) are 0 B in the first run and 1,024 B \
          (1.00 KiB) in the longer run"]
    );
    assert!(runs_again);
    let runs = merged.record.repeats.unwrap().note(&[]).unwrap();
    assert_eq!(runs, "the figures that limits and baselines judge are equal in 2 runs");

    let (notes, runs_again, _) = decided(on_the_host([4_096, 0, 0], [9, 9, 8]));
    assert_eq!(
        notes,
        ["the longer run measured other figures, so this test is not deterministic: live bytes \
          of host/small after iteration 3 are 9 B in the first run and 8 B in the longer run; no \
          limit or baseline judges them, so no further run compares them"]
    );
    assert!(!runs_again);

    // A limit of the peak or of the retained bytes judges them.
    for layer in [
        Layer { max_peak: Some(Bound::Bytes(Size(9))), ..Layer::default() },
        Layer { max_retained: Some(Size(9)), ..Layer::default() },
    ] {
        let mut limited = first.clone();
        limited.record.limits = limits(layer);
        let second = Some(on_the_host([4_096, 0, 0], [9, 9, 8]));
        let merged = merge(Stage::Decide, &limited, second);
        assert!(merged.record.notes[0].ends_with("8 B in the longer run"));
        assert!(needed_by(Stage::Compare, Explain::Failed, &merged).is_some());
    }

    // Its own peak can be that of a later iteration, but a measured one can prove a higher peak.
    let mut higher = first.clone();
    let host = higher.record.spaces.get_mut(&Space::Host).unwrap();
    (host.metrics.peak_allocated, host.measured_peak) = (1 << 30, Some(8_192));
    let mut limited = first.clone();
    limited.record.spaces.get_mut(&Space::Host).unwrap().metrics.peak_allocated = 4_096;
    limited.record.limits =
        limits(Layer { max_peak: Some(Bound::Bytes(Size(6_000))), ..Layer::default() });
    let merged = merge(Stage::Decide, &limited, Some(higher.clone()));
    assert!(
        merged.record.notes[0].ends_with(
            "`peak_allocated` of host is 4,096 B (4.00 KiB) in the first run and 8,192 B (8.00 KiB) \
             in the longer run"
        ),
        "{:?}",
        merged.record.notes
    );
    assert!(merged.verdict.has(Code::Unstable), "{:?}", merged.verdict);
    higher.record.spaces.get_mut(&Space::Host).unwrap().measured_peak = Some(4_096);
    let merged = merge(Stage::Decide, &limited, Some(higher));
    assert_eq!(merged.record.notes, [""; 0], "the first run had this peak too");
    let mut alone = limited.clone();
    alone.record.spaces.get_mut(&Space::Host).unwrap().metrics.peak_allocated = 8_192;
    let merged = merge(Stage::Decide, &limited, Some(alone));
    assert!(merged.verdict.has(Code::Unstable), "it had no further iterations");
    let mut small = first.clone();
    small.record.spaces.get_mut(&Space::HostSmall).unwrap().measured_peak = Some(50);
    let merged = merge(Stage::Decide, &first, Some(small));
    assert_eq!(merged.record.notes, [""; 0], "no limit judges the peak of small blocks");

    // A body may fail in the iterations beyond the measured ones.
    let mut failed = on_the_host([4_096, 0, 0], [9, 9, 9]);
    failed.record.spaces.get_mut(&Space::Host).unwrap().metrics.setup = 7;
    failed.record.outcome = Outcome::Panicked { message: "no more batches".to_owned() };
    let (notes, runs_again, _) = decided(failed.clone());
    assert!(
        notes[0].ends_with("`setup` of host is 0 B in the first run and 7 B in the longer run")
    );
    assert!(runs_again);
    failed.record.lost_events = 1;
    let (notes, runs_again, _) = decided(failed);
    assert!(notes[0].ends_with("`not-measured`, so no further run compares them"), "{notes:?}");
    assert!(!runs_again);
}

#[test]
fn small_blocks_whose_peak_moves_are_compared_by_further_runs_and_hide_no_call_sites() {
    let run = |peak: u64, leaks: bool| {
        let mut run = on_the_host([0; 3], [0; 3]);
        run.record.limits =
            limits(Layer { max_peak: Some(Bound::Bytes(Size(450))), ..Layer::default() });
        let small = run.record.spaces.get_mut(&Space::HostSmall).unwrap();
        (small.growth, small.metrics.peak_allocated) = (Growth::default(), peak);
        let host = if leaks { leaky() } else { armed(Metrics::default()) };
        run.record.spaces.insert(Space::Host, host);
        Seen::from(run.record)
    };
    let explained = |first: Seen, mut second: Seen| {
        second.record.attribution = Some(Attribution::default());
        merge(Stage::Explain, &first, Some(second))
    };
    for (first, second) in [(600, 300), (300, 600)] {
        let merged = explained(run(first, true), run(second, true));
        assert!(merged.verdict.has(Code::Unstable), "{:?}", merged.verdict);
        assert!(needed_by(Stage::Compare, Explain::Failed, &merged).is_some());
    }
    assert!(!explained(run(600, false), run(500, false)).verdict.has(Code::Unstable));
    let within = explained(run(300, true), run(200, true));
    assert!(within.record.attribution.is_some() && within.record.repeats.is_none());
}

#[test]
fn a_gpu_that_only_the_longer_run_has_used_after_the_measured_iterations_has_not_moved() {
    let first = report(undecided());
    let mut longer = first.clone();
    longer.record.judged.push(Space::Cuda(1));
    longer.record.spaces.insert(Space::Cuda(1), undecided());
    let merged = merge(Stage::Decide, &first, Some(longer.clone()));
    assert_eq!((merged.record.notes.len(), merged.record.repeats), (0, None));
    longer.record.spaces.get_mut(&Space::Cuda(1)).unwrap().metrics.setup = 5;
    let merged = merge(Stage::Decide, &first, Some(longer));
    assert!(merged.record.notes[0].contains("`setup` of cuda:1 is 0 B in the first run and 5 B"));
}
