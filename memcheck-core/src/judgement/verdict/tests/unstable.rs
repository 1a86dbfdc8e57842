//! The parts of an `unstable` finding besides its range, and the hints that other findings get.

use super::*;
use crate::measurement::attribution::builder::{Run, once};
use crate::measurement::attribution::{Holder, HolderKind, Peak};
use crate::measurement::comparison;

fn found(record: &Record, baseline: &Baseline, layer: Layer) -> Vec<Finding> {
    judge(record, baseline, &limits(layer), |code| code.default_level(false)).findings
}

fn twice(mut first: Record, second: &Record) -> Record {
    comparison::add(&mut first, comparison::compared(second));
    first
}

fn peak(bytes: u64) -> Record {
    record(armed(Metrics { peak_allocated: bytes, ..Metrics::default() }))
}

#[test]
fn a_baseline_without_a_tolerance_is_stated_once() {
    let [finding] = found(&twice(peak(110), &peak(100)), &kept(&peak(100)), Layer::default())
        .try_into()
        .expect("one finding");
    assert_eq!((finding.code, finding.space), (Code::Unstable, Some(GPU)));
    assert!(finding.message.ends_with(", and exceeds the baseline of 100 B in 1 of them"));
}

#[test]
fn a_baseline_of_other_spaces_has_no_threshold() {
    let mut more = peak(100);
    more.judged.push(Space::Cuda(1));
    more.spaces.insert(Space::Cuda(1), armed(Metrics::default()));
    let found = found(&twice(peak(110), &peak(100)), &kept(&more), Layer::default());
    let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [Code::UncomparableBaseline]);
}

/// `figure` is its bytes at the peak, its bytes at the end and its number of allocations.
fn with_line(figure: u64) -> Record {
    let mut run = Run::default().place(&[], once(60, 0)).retained(1, figure).record();
    let holders = vec![Holder { place: 0, kind: HolderKind::Activations, bytes: figure, count: 1 }];
    let peak = Peak { bytes: figure, iteration: 1, holders, ..Peak::default() };
    run.attribution.as_mut().unwrap().peaks.insert(GPU, peak);
    let measured = run.spaces.get_mut(&GPU).unwrap();
    (measured.metrics.peak_allocated, measured.metrics.retained) = (figure, figure);
    measured.allocations = vec![figure; 10];
    // Runs are compared by the most allocations of an iteration only if the test limits them.
    run.limits = limits(Layer { max_allocations: Some(55), ..Layer::default() });
    run
}

#[test]
fn an_unstable_figure_has_the_lines_that_make_it() {
    let run = twice(with_line(60), &with_line(50));
    let layers = [
        Layer { max_peak: Some(Size(55).into()), ..Layer::default() },
        Layer { max_retained: Some(Size(55)), ..Layer::default() },
        Layer { max_allocations: Some(55), ..Layer::default() },
    ];
    for layer in layers {
        // Only the figure of this limit must be a finding.
        let wide = Layer { max_retained: layer.max_retained.or(Some(Size(60))), ..layer };
        let [finding] = found(&run, &Baseline::Off, wide).try_into().expect("one finding");
        assert_eq!((finding.code, finding.sites[0].line), (Code::Unstable, Some(1)), "{finding:?}");
    }
}

#[test]
fn findings_without_call_sites_state_why_if_no_run_had_the_same_figures() {
    let layer =
        Layer { max_peak: Some(Size(9).into()), max_retained: Some(Size(60)), ..Layer::default() };
    let hint = |run: &Record| {
        let finding = found(run, &Baseline::Off, layer.clone()).remove(0);
        assert_eq!(finding.code, Code::PeakLimit);
        finding.hint
    };
    let placed = twice(with_line(60), &with_line(50));
    assert_eq!(hint(&placed), None);
    let counted = Record { attribution: None, ..placed };
    assert!(
        hint(&counted)
            .unwrap()
            .starts_with("the call sites are missing, because no run with call stacks")
    );
    let mut asked = counted;
    asked.repeats.as_mut().unwrap().asked = Some(2);
    assert_eq!(hint(&asked), None);
}
