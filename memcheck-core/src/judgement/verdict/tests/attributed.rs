//! Findings of a run with call sites. The verdict is the same, and it has places and causes.

use super::*;
use crate::growth::survivors::{Group, Growth, Reading};
use crate::judgement::finding::Site;
use crate::measurement::attribution::builder::{
    Run, enlarged, grows, kept, of_sizes, once, steady,
};
use crate::measurement::attribution::{Holder, HolderKind, Peak, Refused};
use crate::measurement::record::Followed;
use crate::measurement::stack::Frame;

const MATMUL: &str = "candle_core::tensor::Tensor::matmul";

fn found(record: &Record, layer: Layer) -> Vec<Finding> {
    judge(record, &Baseline::Off, &limits(layer), |code| code.default_level(false)).findings
}

fn at_most(bytes: u64) -> Layer {
    Layer { max_growth: Some(Size(bytes)), ..Layer::default() }
}

fn places(finding: &Finding) -> Vec<(Option<u64>, u64, Option<u32>)> {
    let place = |site: &Site| (site.block, site.bytes_per_iteration, site.line);
    finding.sites.iter().map(place).collect()
}

/// One line that leaks 1 KiB per iteration, and ten lines that each leave 4 MiB once.
fn scattered() -> Record {
    let leak = Run::default().place(&[MATMUL], steady(1 << 10)).tensors(&[&[16, 16]]);
    let lines = (0..10).fold(leak, |run, at| run.place(&[], once(4 << 20, at)));
    lines.unplaced(steady(4 << 20)).record()
}

#[test]
fn the_run_that_explains_fails_as_the_run_that_counted() {
    let explained = scattered();
    let counted = Record { attribution: None, ..explained.clone() };
    let growth = (4 << 20) + (1 << 10);
    for record in [&counted, &explained] {
        let [leak] = found(record, at_most(growth - 1)).try_into().expect("one finding");
        assert_eq!((leak.code, leak.bytes_per_iteration), (Code::Leak, Some(growth)));
        assert!(found(record, at_most(growth)).is_empty());
    }
}

#[test]
fn a_leak_that_could_be_a_cache_names_the_option_for_its_size() {
    const STORE: &str = "candle_core::backprop::GradStore::new";
    let names_option = |run: Run, layer: Layer| {
        let leak = found(&run.record(), layer).remove(0);
        assert_eq!(leak.code, Code::Leak);
        leak.hint.is_some_and(|hint| hint.contains("`max_kept = "))
    };
    let kept = |group: Group| Run::default().place(&[MATMUL], group).tensors(&[&[16, 16]]);
    let irregular = of_sizes([9, 0, 9, 9, 0, 0, 9, 0, 9, 0]);
    for group in [steady(1 << 10), irregular] {
        assert!(names_option(kept(group), at_most(0)));
    }
    assert!(!names_option(kept(enlarged(64)), at_most(0)), "a cache has blocks of its own");
    let stores = Run::default().place(&[STORE], steady(64));
    let cause = found(&stores.record(), at_most(0)).remove(0).cause.expect("a cause").code;
    assert_eq!(cause, "grad-store-kept");
    let stores = Run::default().place(&[STORE], steady(64));
    assert!(!names_option(stores, at_most(0)), "its owner is known");
    let layer = Layer { max_kept: Some(Size(8)), ..at_most(0) };
    assert!(!names_option(kept(steady(64)), layer), "it is set");
}

#[test]
fn kept_memory_above_its_limit_has_the_lines_that_hold_it() {
    let layer = || Layer { max_kept: Some(Size(9)), ..Layer::default() };
    let mut record = Run::default().place(&[MATMUL], steady(64)).place(&[], once(8, 3)).record();
    record.spaces.get_mut(&GPU).unwrap().kept = Some(10);
    let lines = |record: &Record| {
        let kept = found(record, layer()).remove(0);
        assert_eq!((kept.code, kept.figure, kept.limit), (Code::KeptLimit, Some(10), Some(9)));
        kept.sites.iter().map(|site| (site.line, site.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(lines(&record), [(Some(1), 640), (Some(2), 8)], "without a peak, all survivors");
    let holder = |place, kind, bytes| Holder { place, kind, bytes, count: 1 };
    let holders = vec![holder(0, HolderKind::Activations, 99), holder(1, HolderKind::Kept, 8)];
    let peak = Peak { bytes: 107, holders, ..Peak::default() };
    record.attribution.as_mut().unwrap().peaks.insert(GPU, peak);
    assert_eq!(lines(&record), [(Some(2), 8)]);
    record.spaces.get_mut(&GPU).unwrap().kept = Some(9);
    assert!(found(&record, layer()).is_empty());
}

#[test]
fn the_sites_of_a_leak_are_lines_and_sizes_that_no_line_accounts_for() {
    let leak = found(&scattered(), at_most(0)).remove(0);
    let (mebi, sites) = (4 << 20, places(&leak));
    assert_eq!(sites[0], (Some(mebi), mebi, None), "the size, over all lines");
    let lines: Vec<_> = (2..=11).map(|line| (Some(mebi), 0, Some(line))).collect();
    assert_eq!(sites[1..11], lines);
    assert_eq!(sites[11..], [(Some(1 << 10), 1 << 10, Some(1))]);
    assert!(
        leak.message.ends_with(": 20 blocks from the 10 measured iterations are still live"),
        "{leak:?}"
    );
    // A line that accounts for all growth is the only place.
    let one = Run::default().place(&[MATMUL], steady(1 << 10)).place(&[], once(7, 3)).record();
    let leak = found(&one, at_most(0)).remove(0);
    assert_eq!(places(&leak), [(Some(1 << 10), 1 << 10, Some(1))]);
    assert_eq!(leak.sites[0].operation.as_deref(), Some("matmul"));
    assert_eq!(leak.cause.unwrap().code, "tensor-kept");
}

#[test]
fn retained_memory_has_its_lines_and_its_known_cause() {
    let cause_of = |run: Run| {
        let [retained] = found(&run.record(), at_most(1 << 20)).try_into().expect("one finding");
        assert_eq!((retained.code, retained.figure), (Code::Retained, Some(8_192)));
        assert_eq!(retained.sites.len(), 1, "{retained:?}");
        assert_eq!((retained.sites[0].line, retained.sites[0].bytes), (Some(1), 8_192));
        retained.cause.map(|cause| cause.code)
    };
    let left =
        |calls| Run::default().place(&[], once(8_192, 2)).totals(calls, 12_288).retained(1, 8_192);
    assert_eq!(cause_of(left(3)).as_deref(), Some("cache-keeps-largest"));
    // Surviving blocks that do not grow are not a mistake.
    assert_eq!(cause_of(left(1)), None);
    let leak = Run::default().place(&[], steady(1 << 10)).retained(8, 8_192);
    assert_eq!(cause_of(leak).as_deref(), Some("buffers-kept"));
}

#[test]
fn findings_with_call_sites_state_why_names_are_incomplete() {
    let mut record = scattered();
    let attribution = record.attribution.as_mut().unwrap();
    attribution.hint = Some("no line tables".to_owned());
    record.lost_events = 1;
    let findings = found(&record, at_most(0));
    let hints: Vec<_> =
        findings.iter().map(|finding| (finding.code, finding.hint.as_deref())).collect();
    let hint = Some("no line tables");
    assert_eq!(hints, [(Code::NotMeasured, None), (Code::Leak, hint)]);
}

#[test]
fn a_call_site_without_a_line_of_the_program_has_its_stack() {
    let mut record = Run::default().place(&[MATMUL], steady(1 << 10)).record();
    let stack = &mut record.attribution.as_mut().unwrap().stacks[0];
    stack.frames.retain(|frame| frame.file.is_none());
    let leak = found(&record, at_most(0)).remove(0);
    assert_eq!((leak.sites[0].line, &leak.sites[0].function), (None, &None));
    let functions: Vec<_> = leak.sites[0].stack.iter().map(Frame::short).collect();
    assert_eq!(functions, ["Tensor::matmul"]);
}

fn lines(finding: &Finding) -> Vec<(Option<u32>, u64)> {
    finding.sites.iter().map(|site| (site.line, site.bytes)).collect()
}

/// 60 bytes of one line were live when 30 of the other were refused; the peak was 80 of each.
fn refused() -> Record {
    let mut record = Run::default().place(&[], once(60, 0)).place(&[MATMUL], once(20, 0)).record();
    let holder = |place, bytes| Holder { place, kind: HolderKind::Activations, bytes, count: 1 };
    let attribution = record.attribution.as_mut().unwrap();
    let holders = vec![holder(0, 60)];
    let refusal = Refused { stack: 1, scope: "attn".to_owned(), requested: 30, holders };
    attribution.refused.insert(GPU, refusal);
    let holders = vec![holder(0, 60), holder(1, 20)];
    attribution.peaks.insert(GPU, Peak { bytes: 80, iteration: 1, holders, ..Peak::default() });
    let measured = record.spaces.get_mut(&GPU).unwrap();
    measured.metrics.peak_allocated = 80;
    measured.refused = Some(crate::measurement::record::RefusedAllocation {
        requested: 30,
        live: 60,
        host: 0,
        last: true,
    });
    record.outcome = Outcome::Failed { error: "CUDA_ERROR_OUT_OF_MEMORY".into() };
    record.capacities.insert(GPU, 100);
    record
}

#[test]
fn a_refused_allocation_has_its_line_and_those_of_the_holders() {
    let fits = |bytes| Layer {
        fits: Some(crate::capacity::Capacity::Bytes(Size(bytes))),
        ..at_most(1 << 20)
    };
    for (layer, code) in [(fits(85), Code::DoesNotFit), (at_most(1 << 20), Code::OutOfMemory)] {
        let found = found(&refused(), layer).remove(0);
        assert_eq!(found.code, code);
        assert_eq!(lines(&found), [(Some(2), 30), (Some(1), 60)], "{code}");
        assert_eq!(found.sites[0].scope.as_deref(), Some("attn"));
        assert_eq!(found.sites[0].operation.as_deref(), Some("matmul"));
    }
    let record = Record { outcome: Outcome::Returned, ..refused() };
    let found = found(&record, fits(79)).remove(0);
    assert_eq!(found.code, Code::DoesNotFit);
    assert_eq!(lines(&found), [(Some(1), 60), (Some(2), 20)]);
}

#[test]
fn too_many_allocations_have_the_lines_that_allocate_the_most_often() {
    let mut record = Run::default()
        .place(&[], once(60, 0))
        .place(&[MATMUL], once(20, 0))
        .place(&[], once(9, 0))
        .record();
    let places = &mut record.attribution.as_mut().unwrap().places;
    places[1].last_calls = 3;
    // This place allocated only in an earlier iteration or in the set-up.
    places[2].last = 4;
    record.spaces.get_mut(&GPU).unwrap().allocations = vec![4; 10];
    let layer = Layer { max_allocations: Some(3), ..at_most(1 << 20) };
    let found = found(&record, layer).remove(0);
    assert_eq!(found.code, Code::AllocationsLimit);
    let counts: Vec<_> = found.sites.iter().map(|site| (site.line, site.count)).collect();
    assert_eq!(counts, [(Some(2), 3), (Some(1), 1)]);
}

#[test]
fn a_leak_that_accelerates_says_by_how_much() {
    let message = |all: &[(Pattern, u64, u64)]| {
        let run = all.iter().fold(Run::default(), |run, &(pattern, period, bytes)| {
            let reading = Reading { period, bytes, ..grows(pattern, 64) };
            run.place(&[], kept(64, [1; 10], reading))
        });
        let layer = Layer { max_growth: Some(Size(0)), ..Layer::default() };
        found(&run.record(), layer).remove(0).message
    };
    let steady = (Pattern::Steady, 1, 64);
    let growing = |period, bytes| (Pattern::Growing, period, bytes);
    let of_16 = message(&[growing(1, 16)]);
    let text = "by 64 B per iteration on average, and adds 16 B more in each iteration than in the \
                one before (limit 0 B)";
    assert!(of_16.contains(text), "{of_16}");
    let mixed = message(&[growing(1, 16), steady]);
    assert!(mixed.contains(&text.replace("64 B", "128 B")), "{mixed}");
    let of_two = message(&[growing(1, 16), growing(1, 8)]);
    assert!(of_two.contains("adds 24 B more in each iteration"), "{of_two}");
    let unlike = message(&[growing(1, 16), growing(3, 16)]);
    for unlike in [unlike, message(&[steady])] {
        assert!(unlike.contains("per iteration (limit 0 B)"), "{unlike}");
    }
}

#[test]
fn the_size_of_an_enlarged_buffer_is_that_of_the_longer_run_and_says_so() {
    let notes = |iterations: u32, group: Group| {
        let mut run = Run::default().place(&[], group).record();
        run.limits = limits(Layer { max_growth: Some(Size(0)), ..Layer::default() });
        let found = Growth::Found { whole: true, exact: true, iterations: iterations + 2 };
        run.spaces.values_mut().for_each(|measured| measured.growth = found);
        run.followed = Some(Followed {
            iterations,
            seconds: 0.1,
            decided: true,
            disturbed: true,
            ended: None,
        });
        let verdict = judge(&run, &Baseline::Off, &run.limits, |code| code.default_level(false));
        verdict.findings[0].sites[0].note.clone().unwrap()
    };
    let size = "; this is its size after 243 iterations";
    let buffer = notes(241, enlarged(64));
    assert_eq!(buffer, format!("replaced by one larger by 64 B in every iteration{size}"));
    assert!(!notes(10, enlarged(64)).contains("its size"));
    let mut two = enlarged(64);
    two.births.iter_mut().for_each(|born| *born *= 2);
    assert!(notes(241, two).ends_with("; these are their sizes after 243 iterations"));
    assert!(!notes(241, steady(64)).contains("its size"), "each block has one size");
}
