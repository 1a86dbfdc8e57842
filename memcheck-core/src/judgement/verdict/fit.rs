//! `does-not-fit`: the test must fit into the capacity `fits`, on each device separately. The
//! runtime enforces it, but threads can pass that check together, so the peak is judged too.

use crate::capacity::Capacity;
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::limits::Limits;
use crate::measurement::record::{Metrics, Record, RefusedAllocation};
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
    let RefusedAllocation { requested, live, last: _ } = refusal;
    let needed = live + requested;
    let device = *record.capacities.get(&space)?;
    (capacity.bytes() < needed && needed <= device).then(|| {
        let message = format!(
            "{space} refused an allocation of {} with {} live, the test must fit into {}{}; {what}",
            both(requested),
            both(live),
            describe_capacity(capacity),
            other_processes(record, space),
        );
        let sites = blame::at_refusal(record, space);
        Finding { sites, ..finding(space, needed, capacity, message) }
    })
}

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
        let refused = Some(RefusedAllocation { requested: 30, live: 60, last: true });
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
