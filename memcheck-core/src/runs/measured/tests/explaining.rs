//! The run that explains a test whose resident memory is judged: it has further iterations, and no
//! second round.

use super::*;
use crate::measurement::attribution::builder;

/// A test that leaves 5,000 bytes behind, of which a second round adds `again`.
fn retains(again: u64, limit: Option<u64>) -> Record {
    let mut record = record(SpaceRecord {
        retained_again: limit.is_none().then_some(again),
        ..armed(Metrics { peak_allocated: 9_000, retained: 5_000, ..Metrics::default() })
    });
    let (max_rss_growth, max_retained) = (Some(Size(1 << 20)), limit.map(Size));
    record.limits = limits(Layer { max_rss_growth, max_retained, ..Layer::default() });
    record
}

fn explained(first: Record) -> Concluded {
    let mut second =
        builder::Run::default().place(&[], builder::once(8, 1)).retained(1, 5_000).record();
    second.limits = first.limits.clone();
    second.spaces = first.spaces.clone();
    let measured = second.spaces.get_mut(&GPU).unwrap();
    (measured.metrics.peak_allocated, measured.metrics.retained) = (1 << 30, 6_000);
    measured.retained_again = None;
    let mut test = MeasuredTest::new(Explain::Failed, Stage::ALL);
    test.runs = vec![run_of(Stage::First, Some(first))];
    let plan = RunPlan { follow: Follow::Yes, reach: Reach::Decision };
    test.runs.push(Run { plan, ..run_of(Stage::Explain, Some(second)) });
    test.judge(&OFF)
}

#[test]
fn memory_that_is_allocated_once_stays_so_if_the_explaining_run_has_no_second_round() {
    let concluded = explained(retains(0, None));
    let record = concluded.record.unwrap();
    assert_eq!(concluded.verdict.findings, []);
    let measured = &record.spaces[&GPU];
    let figures = (measured.metrics.peak_allocated, measured.metrics.retained);
    assert_eq!((figures, measured.retained_again), ((9_000, 5_000), Some(0)));
    assert!(record.attribution.is_some(), "its call sites are not lost");
    let once = "5,000 B (4.88 KiB) in cuda:0 were allocated once in this process (a second round \
                of the body retained no more): 5,000 B (4.88 KiB) at src/step.rs:1";
    assert!(record.remarks.contains(&once.to_owned()), "{:?}", record.remarks);
}

#[test]
fn memory_that_a_second_round_adds_is_retained_although_another_run_explains_it() {
    let figure = |concluded: Concluded| {
        let findings = concluded.verdict.findings;
        findings.iter().map(|found| (found.code, found.figure)).collect::<Vec<_>>()
    };
    assert_eq!(figure(explained(retains(4_000, None))), [(Code::Retained, Some(4_000))]);
    // A limit of the user applies to all bytes.
    assert_eq!(figure(explained(retains(0, Some(100)))), [(Code::Retained, Some(5_000))]);
}
