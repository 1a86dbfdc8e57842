use super::*;

const SPACE: Space = Space::Cuda(0);

fn block(context: u32, size: u64) -> Block {
    Block { size, space: SPACE, origin: Origin { birth: 1, context, shape: 0 } }
}

fn folded(events: &[Event]) -> Trace {
    let mut trace = Trace::default();
    for event in events {
        trace.take(*event);
    }
    trace
}

fn held(trace: &Trace) -> Vec<(u32, u16, u64)> {
    let mut held: Vec<_> = trace
        .peak(SPACE)
        .iter()
        .map(|held| (held.key.context, held.key.shape, held.bytes))
        .collect();
    held.sort_unstable();
    held
}

#[test]
fn holders_at_the_peak_add_up_to_it_after_later_events() {
    use Event::{Allocated, Freed};
    let trace = folded(&[
        Allocated(block(1, 100)),
        Allocated(block(2, 50)),
        Freed(block(1, 100)),
        Allocated(block(3, 120)), // the peak: 170
        Freed(block(2, 50)),
        Freed(block(3, 120)),
        Allocated(block(1, 60)),
    ]);
    assert_eq!(trace.spaces[&SPACE].peak, 170);
    assert_eq!(held(&trace), [(2, 0, 50), (3, 0, 120)]);
}

#[test]
fn a_leak_in_each_of_many_iterations_has_one_holder_by_age() {
    const ITERATIONS: u32 = 100_000;
    let born =
        |birth, size| Block { origin: Origin { birth, ..block(1, size).origin }, ..block(1, size) };
    let mut trace = folded(&[Event::Allocated(born(0, 7))]);
    for iteration in 1..=ITERATIONS {
        trace.take(Event::Iteration(iteration));
        trace.take(Event::Allocated(born(iteration, 100)));
        trace.take(Event::Allocated(born(iteration, 10)));
        // A block of the iteration before dies.
        if iteration > 1 {
            trace.take(Event::Freed(born(iteration - 1, 10)));
        }
    }
    let at_peak = |trace: &Trace| {
        let mut held: Vec<_> =
            trace.peak(SPACE).iter().map(|held| (held.birth, held.bytes, held.count)).collect();
        held.sort_unstable();
        held
    };
    let earlier = u64::from(ITERATIONS - 1);
    // The last peak is before the last death.
    let expected = [(0, 7, 1), (1, 100 * earlier + 10, earlier + 1), (ITERATIONS, 110, 2)];
    assert_eq!(at_peak(&trace), expected);
    assert_eq!((trace.places.len(), trace.indices.len()), (1, 1));
    // Later iterations do not change the holders at the peak.
    trace.take(Event::Iteration(ITERATIONS + 1));
    trace.take(Event::Freed(born(ITERATIONS, 100)));
    trace.take(Event::Allocated(born(ITERATIONS + 1, 1)));
    assert_eq!(at_peak(&trace), expected);
}

#[test]
fn blocks_live_at_the_last_refusal_are_kept() {
    use Event::{Allocated, Freed, Refused};
    let trace = folded(&[
        Allocated(block(1, 100)),
        Allocated(block(2, 50)),
        Refused(block(3, 900)),
        Freed(block(1, 100)),
        Refused(block(4, 800)),
        Freed(block(2, 50)),
    ]);
    let refused = &trace.refused[&SPACE];
    assert_eq!((refused.block.origin.context, refused.block.size), (4, 800));
    let live: Vec<_> = refused.live.iter().map(|held| (held.key.context, held.bytes)).collect();
    assert_eq!(live, [(2, 50)]);
    assert_eq!(trace.spaces[&SPACE].peak, 150, "a refused block is never live");
}

#[test]
fn a_late_shape_counts_at_the_peak() {
    use Event::{Allocated, Freed, Shaped};
    let trace = folded(&[
        Allocated(block(1, 100)),
        Shaped(block(1, 100), 7),
        Allocated(block(1, 40)), // the peak: 140
        Shaped(block(1, 40), 8),
        Freed(Block { origin: Origin { shape: 8, ..block(1, 0).origin }, ..block(1, 40) }),
        Allocated(block(1, 30)), // below the peak
        Shaped(block(1, 30), 9),
    ]);
    assert_eq!(trace.spaces[&SPACE].peak, 140);
    assert_eq!(held(&trace), [(1, 7, 100), (1, 8, 40)]);
    let calls: u64 = trace.totals().map(|(_, total)| total.calls).sum();
    assert_eq!(calls, 3);
}

#[test]
fn a_late_shape_counts_in_the_iteration_of_its_block() {
    use Event::{Allocated, Iteration, Shaped};
    let trace = folded(&[
        Allocated(block(1, 100)), // set-up
        Iteration(1),
        Shaped(block(1, 100), 7),
        Allocated(block(2, 40)),
        Iteration(0),
        Shaped(block(2, 40), 8),
    ]);
    let total = |context, shape| {
        let key = Key { space: SPACE, context, shape };
        trace.totals().find(|(of, _)| *of == key).map(|(_, total)| *total).unwrap_or_default()
    };
    assert_eq!((total(1, 7).iteration, total(1, 7).last_calls), (0, 1));
    assert_eq!((total(2, 8).iteration, total(2, 8).last_calls), (1, 1));
    assert_eq!((total(1, 0).calls, total(2, 0).calls), (0, 0));
}

#[test]
fn the_largest_sites_are_those_that_hold_most_memory_now() {
    use Event::{Allocated, Freed};
    let host = |size| Block { space: Space::Host, ..block(9, size) };
    let mut trace = folded(&[Allocated(host(1_000))]);
    let sites = |trace: &Trace, most| -> Vec<(u32, u64, u64)> {
        let sites = trace.largest(most);
        sites.iter().map(|site| (site.context, site.bytes, site.count)).collect()
    };
    assert_eq!(sites(&trace, 2), [(9, 1_000, 1)]);
    for (context, size) in [(1, 100), (2, 70), (2, 70), (3, 500), (4, 20)] {
        trace.fold(Allocated(block(context, size)));
    }
    trace.fold(Freed(block(3, 500)));
    assert_eq!(sites(&trace, 2), [(2, 140, 2), (1, 100, 1)]);
    assert_eq!(sites(&trace, 9).len(), 3);
}
