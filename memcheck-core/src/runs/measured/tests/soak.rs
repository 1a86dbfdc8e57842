//! The run that iterates for a time which the user asked for.

use std::time::Duration;

use super::*;
use crate::measurement::soak::Soaked;

const MINUTE: Duration = Duration::from_secs(60);

fn soaked_report(growth: Growth, bytes: u64, ended: Option<&str>) -> Seen {
    let metrics = Metrics { growth: bytes, ..Metrics::default() };
    let mut soak = report(SpaceRecord { growth, ..armed(metrics) });
    let ended = ended.map(str::to_owned);
    let soaked = Soaked { asked: 60_000, taken: 60_000, iterations: 900_000, ended };
    soak.record.soaked = Some(soaked);
    soak
}

#[test]
fn a_soak_adds_only_the_growth_that_the_other_runs_did_not_show() {
    let found = |bytes: u64| (Growth::Found { whole: true, exact: true, iterations: 900 }, bytes);
    let quiet = (Growth::Quiet { iterations: 900 }, 0);
    let undecided = Growth::Undecided { open: Open::Slows, bytes: 1 << 40, iterations: 900 };
    let grows = |(growth, bytes): (Growth, u64)| {
        let metrics = Metrics { growth: bytes, peak_allocated: 5, ..Metrics::default() };
        report(SpaceRecord { growth, ..armed(metrics) })
    };
    let limit = 1 << 20;
    for (first, soak, merged_growth, code) in [
        (quiet, found(3), 3, None),
        (quiet, found(limit + 1), limit + 1, Some(Code::Leak)),
        (found(7), found(9), 7, None),
        (found(7), quiet, 7, None),
        (found(7), found(limit + 1), limit + 1, Some(Code::Leak)),
        (quiet, (undecided, 0), 0, Some(Code::Undecided)),
        (found(7), (undecided, 0), 7, None),
        (quiet, quiet, 0, None),
    ] {
        let (first, soak) = (grows(first), soaked_report(soak.0, soak.1, None));
        let merged = merge(Stage::Soak(MINUTE), &first, Some(soak.clone()));
        let metrics = merged.record.spaces[&GPU].metrics;
        assert_eq!((metrics.growth, metrics.peak_allocated), (merged_growth, 5), "{soak:?}");
        assert_eq!(merged.record.soaked, soak.record.soaked);
        let codes: Vec<Code> = merged.verdict.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, Vec::from_iter(code), "{:?}", merged.verdict);
    }
}

#[test]
fn a_soak_compares_the_growth_of_each_space_with_the_limit_of_that_space() {
    let found = Growth::Found { whole: true, exact: true, iterations: 900 };
    let grows = |space: Space, bytes: u64, (own, max_growth): (u64, u64)| {
        let growing = armed(Metrics { growth: bytes, ..Metrics::default() });
        let mut report = report(armed(Metrics::default()));
        report.record.judged.push(space);
        report.record.spaces.insert(space, SpaceRecord { growth: found, ..growing });
        let own = Some(Size(own));
        report.record.limits = limits(Layer {
            max_growth: Some(Size(max_growth)),
            max_c_growth: own,
            max_host_growth: own,
            ..Layer::default()
        });
        report
    };
    for space in [Space::CHeap, Space::Host] {
        for (all, after, merged_growth, code) in [
            ((100, 0), 100, 7, None),
            ((100, 1 << 20), 101, 101, Some(Code::Leak)),
            ((100, 1 << 20), 100, 7, None),
        ] {
            let (first, soak) = (grows(space, 7, all), grows(space, after, all));
            let merged = merge(Stage::Soak(MINUTE), &first, Some(soak));
            assert_eq!(
                merged.record.spaces[&space].metrics.growth, merged_growth,
                "{space} {all:?}"
            );
            let codes = merged.verdict.findings.iter().map(|finding| finding.code);
            assert_eq!(Vec::from_iter(codes), Vec::from_iter(code), "{space} {all:?}");
        }
    }
}

#[test]
fn only_a_test_that_can_show_growth_and_has_shown_none_is_soaked() {
    let soaks = |report: &Seen| needed_by(Stage::Soak(MINUTE), Explain::Failed, report);
    let clean = report(armed(Metrics::default()));
    let run = soaks(&clean).unwrap();
    assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Soak(MINUTE)));
    assert_eq!(needed_by(Stage::Soak(MINUTE), Explain::Never, &clean).unwrap().follow, Follow::No);
    assert_eq!(soaks(&report(leaky())), None);
    let changed = |change: fn(&mut Record)| {
        let mut report = clean.clone();
        change(&mut report.record);
        (soaks(&report), report.record.refuses_soak())
    };
    assert_eq!(
        changed(|record| record.iterated = false),
        (None, Some("the body does not iterate"))
    );
    let panicked = changed(|it| it.outcome = Outcome::Panicked { message: "no".to_owned() });
    assert_eq!(panicked, (None, Some("the body did not return")));
    let once = changed(|it| it.limits = limits(Layer { iterations: Some(1), ..Layer::default() }));
    assert_eq!(once, (None, Some("one iteration cannot show growth")));
    let twice = changed(|it| it.limits = limits(Layer { iterations: Some(2), ..Layer::default() }));
    assert!(twice.0.is_some());
}

#[test]
fn a_soak_that_ends_early_or_without_a_record_is_reported() {
    let soak = |ended: Run| {
        let mut test = MeasuredTest::new(Explain::Never, [Stage::Soak(MINUTE)]);
        let first = report(armed(Metrics::default())).record;
        test.runs = vec![run_of(Stage::First, Some(first))];
        assert_eq!(test.next(&NEW).map(|(stage, _)| stage), Some(Stage::Soak(MINUTE)));
        test.runs.push(ended);
        assert_eq!(test.next(&NEW), None);
        test.judge(&NEW)
    };
    let with = |record| run_of(Stage::Soak(MINUTE), Some(record));
    let early = soaked_report(Growth::Quiet { iterations: 9 }, 0, Some("the body panicked"));
    let judged = soak(with(early.record));
    let [missing, finding] = &judged.verdict.findings[..] else { panic!("{:?}", judged.verdict) };
    let (missing, finding) = match missing.code {
        Code::MissingBaseline => (missing, finding),
        _ => (finding, missing),
    };
    assert_eq!((missing.code, finding.code), (Code::MissingBaseline, Code::Undecided));
    assert!(finding.message.ends_with("because the body panicked"), "{finding:?}");
    assert!(judged.is_pending);

    let crashed = Finding::new(Code::Crashed, "SIGSEGV (signal 11) ended the process");
    let judged = soak(Run { finding: Some(crashed), ..run_of(Stage::Soak(MINUTE), None) });
    assert_eq!(judged.verdict.status, Status::Failed);
    let message = &judged.verdict.findings[0].message;
    assert_eq!(message, "in the soak: SIGSEGV (signal 11) ended the process");

    // The run that decides the growth is as important, and later runs do not hide its end.
    let lost = Finding::new(Code::NotMeasured, "the process exited");
    let mut test = MeasuredTest::new(Explain::Failed, Stage::ALL);
    test.runs = vec![
        run_of(Stage::First, Some(report(undecided()).record)),
        Run { finding: Some(lost), ..run_of(Stage::Decide, None) },
        run_of(Stage::Explain, Some(report(leaky()).record)),
    ];
    let judged = test.judge(&NEW);
    assert_eq!(judged.verdict.status, Status::NotMeasured);
    let first = &judged.verdict.findings[0].message;
    assert!(first.starts_with("in further iterations, which decide"), "{first}");
    assert!(!judged.is_pending);

    // The figures of a test that fails in its soak must not be accepted.
    let growth = Growth::Found { whole: true, exact: true, iterations: 9 };
    let leak = soaked_report(growth, 2 << 20, None);
    let judged = soak(with(leak.record));
    assert_eq!(judged.verdict.status, Status::Failed);
    assert!(!judged.is_pending);
}
