//! Regressions of a run with call sites: the holders that changed, and the reason.

use super::*;
use crate::judgement::finding::GrownHolder;
use crate::judgement::rise::RiseKind;
use crate::measurement::attribution::builder::{Run, once};
use crate::measurement::attribution::{Holder, HolderKind, Peak};

/// A peak of one tensor of `columns` by a random function, and of a buffer.
fn at_peak(kind: HolderKind, columns: u64, rest: u64) -> Record {
    let mut run = Run::default()
        .place(&["candle_core::tensor::Tensor::randn"], once(4 * columns, 0))
        .types(&[&[1, columns]])
        .record();
    let holder = Holder { place: 0, kind, bytes: 4 * columns, count: 1 };
    let bytes = 4 * columns + rest;
    let peak = Peak { bytes, iteration: 1, holders: vec![holder], ..Peak::default() };
    run.attribution.as_mut().unwrap().peaks.insert(GPU, peak);
    run.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated = bytes;
    run
}

fn regression(now: &Record, then: &Record) -> Finding {
    let [finding] = found_with_baseline(now, &kept(then), Layer::default()).try_into().unwrap();
    finding
}

#[test]
fn a_larger_shape_is_one_row_with_both_shapes_and_its_cause() {
    let [then, now] = [128, 192].map(|columns| at_peak(HolderKind::Activations, columns, 0));
    let finding = regression(&now, &then);
    let [row] = finding.grown.as_slice() else { panic!("{finding:?}") };
    assert_eq!((row.then, row.now), (512, 768));
    assert_eq!(row.description(), "randn [1,128] → [1,192] f32");
    assert_eq!(row.place.as_deref(), Some("src/step.rs:1"));
    assert_eq!((finding.shrunk.len(), &finding.other_holders), (0, &None));
    assert_eq!(finding.rise.map(|rise| rise.kind), Some(RiseKind::Larger));
    assert_eq!(found_with_baseline(&then, &kept(&then), Layer::default()), []);
}

#[test]
fn memory_of_the_set_up_is_a_cause_of_its_own_only_in_a_body_that_iterates() {
    let [then, now] = [128, 192].map(|columns| at_peak(HolderKind::Setup, columns, 0));
    let of = |now: &Record| regression(now, &then).rise.map(|rise| rise.kind);
    assert_eq!(of(&now), Some(RiseKind::Setup));
    assert_eq!(of(&Record { iterated: false, ..now }), Some(RiseKind::Larger));
}

#[test]
fn bytes_that_no_row_explains_are_the_last_row() {
    let (then, now) =
        (at_peak(HolderKind::Activations, 128, 100), at_peak(HolderKind::Activations, 192, 150));
    let others = regression(&now, &then).other_holders.expect("50 B have no call site");
    assert_eq!((others.then, others.now), (100, 150));
}

#[test]
fn a_regression_has_the_lines_of_its_figure_and_what_changed_at_the_peak() {
    // The second line holds less as the first one holds more.
    let run = |bytes| {
        let mut run =
            Run::default().place(&[], once(60, 0)).place(&["softmax"], once(60, 0)).record();
        let holder =
            |place, bytes| Holder { place, kind: HolderKind::Activations, bytes, count: 1 };
        let holders = vec![holder(0, bytes), holder(1, (1 << 21) - bytes)];
        let attribution = run.attribution.as_mut().unwrap();
        attribution.peaks.insert(GPU, Peak { bytes, iteration: 1, holders, ..Peak::default() });
        let metrics = &mut run.spaces.get_mut(&GPU).unwrap().metrics;
        (metrics.peak_allocated, metrics.allocations) = (bytes, bytes);
        run
    };
    let findings = found_with_baseline(&run(1 << 20), &kept(&run(1 << 10)), Layer::default());
    let lines = |finding: &Finding| (finding.code, finding.sites[0].line, finding.grown.len());
    assert_eq!(
        findings.iter().map(lines).collect::<Vec<_>>(),
        [(Code::AllocationsRegression, Some(1), 0), (Code::PeakRegression, Some(1), 1)]
    );
    let change = |holder: &GrownHolder| (holder.place.clone(), holder.then, holder.now);
    let at = |line: u32| Some(format!("src/step.rs:{line}"));
    assert_eq!(change(&findings[1].grown[0]), (at(1), 1 << 10, 1 << 20));
    let shrunk: Vec<_> = findings[1].shrunk.iter().map(change).collect();
    assert_eq!(shrunk, [(at(2), (1 << 21) - (1 << 10), 1 << 20)]);
    let rows =
        findings[1].grown.iter().chain(&findings[1].shrunk).chain(&findings[1].other_holders);
    let total: i128 = rows.map(GrownHolder::difference).sum();
    assert_eq!(total, (1 << 20) - (1 << 10), "the rows add up to the rise of the peak");
}

#[test]
fn more_allocations_begin_with_a_line_that_the_baseline_does_not_have_at_its_peak() {
    let run = |holders: &[usize]| {
        let tensor = ["relu", "sqr"].map(|name| format!("candle_core::tensor::Tensor::{name}"));
        let mut run = Run::default()
            .place(&[&tensor[0]], once(60, 0))
            .place(&[&tensor[1]], once(60, 0))
            .record();
        let kind = HolderKind::Activations;
        let holder = |&place: &usize| Holder { place, kind, bytes: 60, count: 1 };
        let holders: Vec<Holder> = holders.iter().map(holder).collect();
        let allocations = holders.len() as u64;
        let attribution = run.attribution.as_mut().unwrap();
        attribution.peaks.insert(GPU, Peak { holders, ..Peak::default() });
        run.spaces.get_mut(&GPU).unwrap().metrics.allocations = allocations;
        run
    };
    let first = |now: &[usize], then: &[usize]| {
        let found = found_with_baseline(&run(now), &kept(&run(then)), Layer::default());
        let finding = found.iter().find(|it| it.code == Code::AllocationsRegression).unwrap();
        let site = &finding.sites[0];
        (site.operation.clone().unwrap(), site.note.clone().unwrap())
    };
    let (operation, note) = first(&[0, 1], &[0]);
    assert_eq!((operation.as_str(), note.ends_with("; new at the peak")), ("sqr", true), "{note}");
    let (operation, note) = first(&[0, 1, 1], &[0, 1]);
    let unknown = note.ends_with("; the baseline has no lines to compare with");
    assert_eq!((operation.as_str(), unknown), ("relu", true), "{note}");
}
