//! The C heap, the process, and the host of a test on a GPU: only their own limits apply to them.

use super::*;
use crate::growth::survivors::Growth;

fn with(space: Space, measured: SpaceRecord) -> Record {
    Record {
        judged: vec![GPU, space],
        spaces: BTreeMap::from([(GPU, armed(Metrics::default())), (space, measured)]),
        ..record(SpaceRecord::default())
    }
}

fn grown(rate: u64) -> SpaceRecord {
    let group = builder::kept(rate, [1; 10], grows(Pattern::Steady, rate));
    SpaceRecord {
        survivors: vec![group],
        growth: Growth::Found { whole: true, exact: true, iterations: 165 },
        ..armed(Metrics { growth: rate, ..Metrics::default() })
    }
}

fn findings(record: &Record, layer: Layer) -> Vec<Finding> {
    judge(record, &Baseline::Off, &limits(layer), |code| code.default_level(false)).findings
}

#[test]
fn growth_of_the_c_heap_is_a_leak_above_its_own_limit() {
    let run = with(Space::CHeap, grown(1_000));
    let of = |bytes| Layer { max_c_growth: Some(Size(bytes)), ..Layer::default() };
    let found = findings(&run, of(999));
    assert_eq!((found[0].code, found[0].space), (Code::Leak, Some(Space::CHeap)));
    assert_eq!((found[0].limit, &found[0].cause), (Some(999), &None));
    assert_eq!(findings(&run, of(1_000)), []);
    let strict = Layer { max_growth: Some(Size(0)), ..of(1_000) };
    assert_eq!(findings(&run, strict), [], "`max_growth` is not about the C heap");
}

#[test]
fn other_limits_do_not_apply_to_the_c_heap() {
    let metrics = Metrics { peak_allocated: 9_000, retained: 9_000, ..Metrics::default() };
    let measured = SpaceRecord { allocations: vec![9_000; 10], ..armed(metrics) };
    let strict = Layer {
        max_peak: Some(Bound::Bytes(Size(1))),
        max_retained: Some(Size(0)),
        max_allocations: Some(1),
        max_c_growth: Some(Size(0)),
        ..Layer::default()
    };
    let run = with(Space::CHeap, measured.clone());
    assert_eq!(findings(&run, strict.clone()), []);
    assert!(!Figures::of(&run).0.contains_key(&Space::CHeap));
    let unarmed = with(Space::CHeap, SpaceRecord { armed: false, ..measured });
    let found = findings(&unarmed, strict);
    assert_eq!((found[0].code, found[0].space), (Code::NotMeasured, Some(Space::CHeap)));
}

#[test]
fn growth_of_the_process_is_above_its_limit_only_if_it_was_found() {
    let of = |bytes| Layer { max_rss_growth: Some(Size(bytes)), ..Layer::default() };
    let run = with(Space::Process, grown(4_096));
    let found = findings(&run, of(4_095));
    assert_eq!((found[0].code, found[0].space), (Code::GrowthLimit, Some(Space::Process)));
    assert_eq!((found[0].bytes_per_iteration, found[0].limit), (Some(4_096), Some(4_095)));
    assert!(found[0].message.contains("4,096 B"), "{}", found[0].message);
    assert_eq!(findings(&run, of(4_096)), []);
    let quiet = SpaceRecord { growth: Growth::Quiet { iterations: 65 }, ..grown(4_096) };
    assert_eq!(findings(&with(Space::Process, quiet), of(0)), []);
    let open = crate::growth::lifetimes::Open::Slows;
    let undecided = Growth::Undecided { open, bytes: 1 << 20, iterations: 102 };
    let undecided = SpaceRecord { growth: undecided, ..armed(Metrics::default()) };
    let found = findings(&with(Space::Process, undecided), of(4_096));
    assert_eq!((found[0].code, found[0].space), (Code::Undecided, Some(Space::Process)));
}

#[test]
fn the_host_of_a_test_on_a_gpu_has_only_limits_of_its_own() {
    let metrics =
        Metrics { peak_allocated: 9_000, retained: 9_000, growth: 100, ..grown(100).metrics };
    let measured = SpaceRecord { metrics, allocations: vec![9_000; 10], ..grown(100) };
    let run = with(Space::Host, measured);
    let strict = Layer {
        max_growth: Some(Size(0)),
        max_peak: Some(Bound::Bytes(Size(1))),
        max_retained: Some(Size(0)),
        max_allocations: Some(1),
        ..Layer::default()
    };
    assert_eq!(findings(&run, strict.clone()), []);
    assert!(!Figures::of(&run).0.contains_key(&Space::Host));
    let of_host = |growth, peak| Layer {
        max_host_growth: Some(Size(growth)),
        max_host_peak: Some(Size(peak)),
        ..strict.clone()
    };
    assert_eq!(findings(&run, of_host(100, 9_000)), []);
    let found = findings(&run, of_host(99, 8_999));
    let codes: Vec<_> = found.iter().map(|found| (found.code, found.space, found.limit)).collect();
    let host = Some(Space::Host);
    assert_eq!(codes, [(Code::Leak, host, Some(99)), (Code::PeakLimit, host, Some(8_999))]);
}

#[test]
fn the_limits_of_the_host_apply_on_the_cpu_too() {
    let metrics = Metrics { peak_allocated: 9_000, ..grown(100).metrics };
    let run = Record {
        judged: vec![Space::Host],
        spaces: [(Space::Host, SpaceRecord { metrics, ..grown(100) })].into(),
        ..record(SpaceRecord::default())
    };
    let layer = |growth| Layer {
        max_growth: Some(Size(0)),
        max_host_growth: Some(Size(growth)),
        max_host_peak: Some(Size(9_000)),
        ..Layer::default()
    };
    assert_eq!(findings(&run, layer(100)), [], "it takes the place of `max_growth`");
    assert_eq!(findings(&run, layer(99))[0].code, Code::Leak);
    assert!(Figures::of(&run).0.contains_key(&Space::Host));
}

#[test]
fn a_space_whose_canary_was_not_seen_has_its_own_hint() {
    for (space, hint) in [
        (Space::CHeap, "remove it, or `max_c_growth`"),
        (Space::Process, "is /proc mounted"),
        (Space::Host, "#[global_allocator]"),
        (Space::HostSmall, "#[global_allocator]"),
        (GPU, "calls CUDA in a way"),
    ] {
        let measured = SpaceRecord { armed: false, ..armed(Metrics::default()) };
        let mut run = with(Space::Host, armed(Metrics::default()));
        run.judged.push(space);
        run.spaces.insert(space, measured);
        let found = findings(&run, Layer::default());
        let found = found.iter().find(|found| found.space == Some(space)).unwrap();
        assert_eq!(found.code, Code::NotMeasured);
        let text = found.hint.as_ref().unwrap().to_lowercase();
        assert!(text.contains(&hint.to_lowercase()), "{space}: {text}");
    }
}
