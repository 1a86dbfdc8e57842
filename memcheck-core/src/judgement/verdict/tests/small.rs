//! Small blocks on the host: judged unless they are the overhead of tensors with a finding.

use super::*;

fn on_the_host(tensors: SpaceRecord, small: SpaceRecord) -> Record {
    Record {
        judged: vec![Space::Host, Space::HostSmall],
        spaces: BTreeMap::from([(Space::Host, tensors), (Space::HostSmall, small)]),
        ..record(SpaceRecord::default())
    }
}

fn found(record: &Record, layer: Layer) -> Vec<(Code, Option<Space>)> {
    let verdict = judge(record, &Baseline::Off, &limits(layer), |code| code.default_level(false));
    verdict.findings.iter().map(|finding| (finding.code, finding.space)).collect()
}

fn leaks(rate: u64) -> SpaceRecord {
    let group = builder::kept(rate, [1; 10], grows(Pattern::Steady, rate));
    let survivors = if rate > 0 { vec![group] } else { Vec::new() };
    SpaceRecord { survivors, ..armed(Metrics { growth: rate, ..Metrics::default() }) }
}

fn retains(bytes: u64) -> SpaceRecord {
    armed(Metrics { retained: bytes, ..Metrics::default() })
}

#[test]
fn small_blocks_that_leak_with_twice_as_many_bytes_of_tensors_are_not_another_finding() {
    let codes_of = |tensors, small, limit| {
        let layer = Layer { max_growth: Some(Size(limit)), ..Layer::default() };
        found(&on_the_host(leaks(tensors), leaks(small)), layer)
    };
    let (tensors, small) = ((Code::Leak, Some(Space::Host)), (Code::Leak, Some(Space::HostSmall)));
    assert_eq!(codes_of(128, 64, 0), [tensors]);
    assert_eq!(codes_of(127, 64, 0), [tensors, small]);
    assert_eq!(codes_of(0, 64, 0), [small]);
    // Tensors within their limit have no finding, so the small blocks are judged.
    assert_eq!(codes_of(1_024, 64, 63), [tensors]);
    assert_eq!(codes_of(1_024, 1_025, 1_024), [small]);
}

#[test]
fn the_message_of_a_leak_has_the_small_blocks_that_are_left_out() {
    let message = |record: &Record| {
        let layer = Layer { max_growth: Some(Size(0)), ..Layer::default() };
        let verdict =
            judge(record, &Baseline::Off, &limits(layer), |code| code.default_level(false));
        verdict.findings[0].message.clone()
    };
    let small = ", and blocks below 1 KiB by 64 B (limit 0 B)";
    let both = message(&on_the_host(leaks(128), leaks(64)));
    assert!(both.contains(small), "{both}");
    // They have a finding of their own, or do not grow.
    for (tensors, of_small) in [(127, 64), (128, 0)] {
        let text = message(&on_the_host(leaks(tensors), leaks(of_small)));
        assert!(!text.contains("blocks below"), "{text}");
    }
    // Those of the host do not belong to a leak on the GPU.
    let mut run = on_the_host(leaks(0), leaks(64));
    run.spaces.insert(GPU, leaks(128));
    run.judged = vec![GPU];
    assert!(!message(&run).contains("blocks below"), "{}", message(&run));
}

#[test]
fn small_blocks_are_undecided_unless_tensors_leak() {
    let growth = crate::growth::survivors::Growth::Unknown;
    let small = |rate| SpaceRecord { growth, ..leaks(rate) };
    let layer = Layer { max_growth: Some(Size(0)), ..Layer::default() };
    let undecided = (Code::Undecided, Some(Space::HostSmall));
    assert_eq!(found(&on_the_host(leaks(0), small(0)), layer.clone()), [undecided]);
    let leak = (Code::Leak, Some(Space::Host));
    assert_eq!(found(&on_the_host(leaks(1_024), small(0)), layer), [leak]);
    // Tensors at their limit do not leak.
    let layer = Layer { max_growth: Some(Size(1_024)), ..Layer::default() };
    assert_eq!(found(&on_the_host(leaks(1_024), small(0)), layer), [undecided]);
}

#[test]
fn small_blocks_that_are_retained_with_twice_as_many_bytes_of_tensors_are_not_another_finding() {
    let codes_of = |tensors, small, limit| {
        let layer = Layer { max_retained: Some(Size(limit)), ..Layer::default() };
        found(&on_the_host(retains(tensors), retains(small)), layer)
    };
    let retained = |space| (Code::Retained, Some(space));
    let (tensors, small) = (retained(Space::Host), retained(Space::HostSmall));
    assert_eq!(codes_of(128, 64, 0), [tensors]);
    assert_eq!(codes_of(127, 64, 0), [tensors, small]);
    assert_eq!(codes_of(0, 64, 0), [small]);
    assert_eq!(codes_of(1_024, 1_025, 1_024), [small]);
}

#[test]
fn small_blocks_count_as_retained_only_after_a_second_round() {
    let once = |bytes| SpaceRecord { retained_again: Some(0), ..retains(bytes) };
    let small = SpaceRecord { retained_again: Some(64), ..retains(64) };
    // The tensors were allocated once in the process, so they do not count as retained.
    let run = on_the_host(once(1 << 20), small);
    assert_eq!(found(&run, Layer::default()), [(Code::Retained, Some(Space::HostSmall))]);
}

#[test]
fn the_number_and_the_bytes_of_small_allocations_are_not_limited() {
    let often = || SpaceRecord {
        allocations: vec![9; 10],
        allocated_total: vec![90; 10],
        ..armed(Metrics::default())
    };
    let layer =
        Layer { max_allocations: Some(8), max_allocated: Some(Size(89)), ..Layer::default() };
    let findings = [Code::AllocationsLimit, Code::AllocatedLimit];
    let findings = findings.map(|code| (code, Some(Space::Host)));
    assert_eq!(found(&on_the_host(often(), often()), layer), findings);
}

#[test]
fn small_blocks_that_a_cache_keeps_with_twice_as_many_bytes_of_tensors_are_not_another_finding() {
    let keeps = |bytes| SpaceRecord { kept: Some(bytes), ..armed(Metrics::default()) };
    let codes_of = |tensors, small, limit| {
        let layer = Layer { max_kept: Some(Size(limit)), ..Layer::default() };
        found(&on_the_host(keeps(tensors), keeps(small)), layer)
    };
    let kept = |space| (Code::KeptLimit, Some(space));
    assert_eq!(codes_of(128, 64, 0), [kept(Space::Host)]);
    assert_eq!(codes_of(127, 64, 0), [kept(Space::Host), kept(Space::HostSmall)]);
    assert_eq!(codes_of(1_024, 1_025, 1_024), [kept(Space::HostSmall)]);
}
