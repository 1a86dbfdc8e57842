//! `does-not-fit`: the test must fit into the capacity `fits`, on each device separately. The
//! runtime enforces it, but threads can pass that check together, so the peak is judged too.

use crate::capacity::Capacity;
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::limits::Limits;
use crate::measurement::record::{Metrics, Record, RefusedAllocation};
use crate::measurement::unified::Unified;
use crate::size::both;
use crate::space::Space;

/// A refusal by `fits` and not by the device; `what` describes the end of the body.
pub(super) fn refused(
    record: &Record,
    limits: &Limits,
    (space, refusal): (Space, RefusedAllocation),
    what: &str,
) -> Option<Finding> {
    let capacity = limits.fits.value?;
    let needed = needed(refusal);
    let RefusedAllocation { requested, live, .. } = refusal;
    let device = *record.capacities.get(&space)?;
    (capacity.bytes() < needed && needed <= device).then(|| {
        let message = format!(
            "{space} refused an allocation of {} with {} live{}, the test must fit into {}{}; {what}",
            both(requested),
            both(live),
            with_host(record, refusal),
            describe_capacity(capacity),
            other_processes(record, space),
        );
        let sites = blame::at_refusal(record, space);
        Finding { sites, ..finding(space, needed, capacity, message) }
    })
}

/// The bytes that the device would have had to have.
pub(super) fn needed(
    RefusedAllocation { requested, live, host, last: _ }: RefusedAllocation,
) -> u64 {
    live.saturating_add(host).saturating_add(requested)
}

/// The host's part of the memory at a refusal, as a part of a sentence; empty if host and device
/// have a memory each.
pub(super) fn with_host(record: &Record, refusal: RefusedAllocation) -> String {
    let Some(unified) = &record.unified else { return String::new() };
    format!(
        " and {} of the host, {} together with the allocation, on {} with {} for both",
        both(refusal.host),
        both(needed(refusal)),
        unified.card,
        both(unified.capacity)
    )
}

/// The one memory of host and device. The host's allocations are not refused, so that the peak is
/// judged too.
pub(super) fn unified(record: &Record, limits: &Limits, known: &[Finding]) -> Option<Finding> {
    let unified = record.unified.as_ref()?;
    // The device has refused an allocation for the same reason.
    if known.iter().any(|it| matches!(it.code, Code::OutOfMemory | Code::DoesNotFit)) {
        return None;
    }
    let Unified { space, card, capacity, peak_allocated: peak } = unified;
    let together = format!("host and {space} hold {} together at the peak", both(*peak));
    let found = match limits.fits.value {
        _ if peak > capacity => Finding {
            space: Some(*space),
            figure: Some(*peak),
            limit: Some(*capacity),
            ..Finding::new(
                Code::OutOfMemory,
                format!("{together}, and {card} has {} for both", both(*capacity)),
            )
        }
        .hint(DROP_FIRST),
        Some(fits) if *peak > fits.bytes() => {
            let message = format!("{together}, the test must fit into {}", describe_capacity(fits));
            finding(*space, *peak, fits, message).hint(DROP_FIRST)
        }
        _ => return None,
    };
    Some(Finding { sites: blame::at_peak(record, *space), ..found })
}

/// The hint for memory that host and device share.
pub(super) const DROP_FIRST: &str = "drop the host's copy before the device's is made, such as a file \
    that is read as a whole: map it, or copy it tensor by tensor";

/// The other processes that hold memory of a device that had none left.
pub(super) fn other_processes(record: &Record, space: Space) -> String {
    let on_it = record.driver.others.iter().filter(|other| other.space == space);
    on_it.map(|other| format!("; {}", other.shown())).collect()
}

pub(super) fn peak(
    record: &Record,
    space: Space,
    metrics: &Metrics,
    limits: &Limits,
) -> Option<Finding> {
    let capacity = limits.fits.value.filter(|_| space.is_device())?;
    let figure = metrics.peak_allocated;
    (figure > capacity.bytes()).then(|| {
        let message = format!(
            "the peak in {space} is {}, the test must fit into {}",
            both(figure),
            describe_capacity(capacity)
        );
        let sites = blame::at_peak(record, space);
        Finding { sites, ..finding(space, figure, capacity, message) }
    })
}

/// `rtx4090, 25,382,879,232 B (23.6 GiB)`.
fn describe_capacity(capacity: Capacity) -> String {
    match capacity {
        Capacity::Card(card) => format!("{}, {}", card.id, both(card.bytes)),
        Capacity::Bytes(size) => both(size.0),
    }
}

fn finding(space: Space, figure: u64, capacity: Capacity, message: String) -> Finding {
    Finding {
        space: Some(space),
        figure: Some(figure),
        limit: Some(capacity.bytes()),
        ..Finding::new(Code::DoesNotFit, message)
    }
    .hint("use a smaller batch, a shorter sequence or a narrower dtype, or raise `fits`")
}

#[cfg(test)]
mod tests {
    use super::super::tests::codes;
    use super::*;
    use crate::judgement::baseline::Baseline;
    use crate::limits::Layer;
    use crate::measurement::record::example::{GPU, armed, limits, record};
    use crate::measurement::record::{Outcome, SpaceRecord};
    use crate::size::Size;

    fn fits(bytes: u64) -> Layer {
        Layer { fits: Some(Capacity::Bytes(Size(bytes))), ..Layer::default() }
    }

    fn refused() -> Record {
        let refused = Some(RefusedAllocation { requested: 30, live: 60, host: 0, last: true });
        let metrics = Metrics { peak_allocated: 60, ..Metrics::default() };
        let mut run = record(SpaceRecord { refused, ..armed(metrics) });
        run.outcome = Outcome::Failed { error: "CUDA_ERROR_OUT_OF_MEMORY".into() };
        run.capacities.insert(GPU, 100);
        run
    }

    #[test]
    fn an_allocation_that_exceeds_only_the_capacity_does_not_fit() {
        let run = refused();
        assert_eq!(codes(&run, &Baseline::Off, fits(89)), ["does-not-fit"]);
        // The capacity had room, so `fits` did not refuse the allocation.
        assert_eq!(codes(&run, &Baseline::Off, fits(90)), ["out-of-memory"]);
        assert_eq!(codes(&run, &Baseline::Off, Layer::default()), ["out-of-memory"]);
    }

    #[test]
    fn an_allocation_that_exceeds_the_device_is_out_of_memory() {
        let mut run = refused();
        run.capacities.insert(GPU, 89);
        assert_eq!(codes(&run, &Baseline::Off, fits(80)), ["out-of-memory"]);
        run.capacities.clear();
        assert_eq!(codes(&run, &Baseline::Off, fits(80)), ["out-of-memory"]);
    }

    #[test]
    fn a_refusal_that_the_body_handles_fits() {
        let run = Record { outcome: Outcome::Returned, ..refused() };
        assert!(codes(&run, &Baseline::Off, fits(80)).is_empty());
    }

    #[test]
    fn a_peak_above_the_capacity_does_not_fit_and_one_at_it_does() {
        let run = record(armed(Metrics { peak_allocated: 100, ..Metrics::default() }));
        assert!(codes(&run, &Baseline::Off, fits(100)).is_empty());
        assert_eq!(codes(&run, &Baseline::Off, fits(99)), ["does-not-fit"]);
    }

    fn shared(peak_allocated: u64) -> Record {
        let mut run = record(armed(Metrics::default()));
        let card = "NVIDIA GB10".to_owned();
        run.unified = Some(Unified { space: GPU, card, capacity: 100, peak_allocated });
        run
    }

    #[test]
    fn host_and_device_must_fit_into_the_memory_that_they_share() {
        assert!(codes(&shared(100), &Baseline::Off, Layer::default()).is_empty());
        let found = unified(&shared(101), &limits(Layer::default()), &[]).unwrap();
        assert_eq!(
            (found.code, found.figure, found.limit),
            (Code::OutOfMemory, Some(101), Some(100))
        );
        assert_eq!(
            found.message,
            "host and cuda:0 hold 101 B together at the peak, and NVIDIA GB10 has 100 B for both"
        );
        assert_eq!((found.space, found.hint.as_deref()), (Some(GPU), Some(DROP_FIRST)));
        assert_eq!(codes(&shared(91), &Baseline::Off, fits(90)), ["does-not-fit"]);
        let found_of_test = unified(&shared(91), &limits(fits(90)), &[]).unwrap();
        assert_eq!(found_of_test.hint.as_deref(), Some(DROP_FIRST));
        assert!(codes(&shared(90), &Baseline::Off, fits(90)).is_empty());
        assert_eq!(unified(&shared(101), &limits(Layer::default()), &[found]), None);
        let separate = Record { unified: None, ..shared(101) };
        assert!(codes(&separate, &Baseline::Off, Layer::default()).is_empty());
    }

    #[test]
    fn a_peak_that_does_not_fit_has_the_lines_that_hold_it() {
        use crate::measurement::attribution::builder::{Run, once};
        use crate::measurement::attribution::{Holder, HolderKind, Peak};
        let mut run = Run::default().place(&[], once(101, 0)).record();
        let holders =
            vec![Holder { place: 0, kind: HolderKind::Activations, bytes: 101, count: 1 }];
        let peak = Peak { bytes: 101, iteration: 1, holders, ..Peak::default() };
        run.attribution.as_mut().unwrap().peaks.insert(GPU, peak);
        run.unified = shared(101).unified;
        let found = unified(&run, &limits(Layer::default()), &[]).unwrap();
        assert_eq!((found.sites[0].line, found.sites[0].bytes), (Some(1), 101));
    }

    #[test]
    fn a_refusal_counts_the_part_of_the_host() {
        let mut run = Record { unified: shared(90).unified, ..refused() };
        let measured = run.spaces.get_mut(&GPU).unwrap();
        measured.refused =
            Some(RefusedAllocation { requested: 30, live: 50, host: 25, last: true });
        assert_eq!(codes(&run, &Baseline::Off, fits(104)), ["out-of-memory"]);
        let found = super::super::ended::judge_outcome(&run, &limits(Layer::default())).unwrap();
        assert_eq!(found.figure, Some(105));
        let host = "with 50 B live and 25 B of the host, 105 B together with the allocation, on \
                    NVIDIA GB10 with 100 B for both; the body";
        assert!(found.message.contains(host), "{}", found.message);
        run.spaces.get_mut(&GPU).unwrap().refused =
            Some(RefusedAllocation { requested: 30, live: 50, host: 20, last: true });
        assert_eq!(codes(&run, &Baseline::Off, fits(99)), ["does-not-fit"]);
    }

    #[test]
    fn the_host_has_no_capacity() {
        let metrics = Metrics { peak_allocated: 100, ..Metrics::default() };
        let run = record(armed(metrics));
        let limits = limits(fits(1));
        assert_eq!(peak(&run, Space::Host, &metrics, &limits), None);
        let found = peak(&run, GPU, &metrics, &limits).unwrap();
        assert_eq!((found.figure, found.limit), (Some(100), Some(1)));
    }
}
