use std::collections::BTreeMap;

use super::*;
use crate::bound::{Bound, Relative};
use crate::judgement::baseline::{Holders, Laws};
use crate::law::{Fraction, Sizes};
use crate::measurement::record::example::{GPU, armed, record};
use crate::measurement::record::{Metrics, Record};
use crate::shape::{Metric, Scaling, ScalingReport};
use crate::space::Space;

fn share(text: &str) -> Relative {
    match text.parse() {
        Ok(Bound::Relative(relative)) => relative,
        other => panic!("{text}: {other:?}"),
    }
}

fn of_peak(peak_allocated: u64) -> Record {
    record(armed(Metrics { peak_allocated, ..Metrics::default() }))
}

#[test]
fn a_peak_is_held_to_its_share_of_the_others() {
    let partner = MeasuredRuns::of(&of_peak(1000));
    for (peak, found) in [(600, 0), (601, 1)] {
        let findings = relative(&of_peak(peak), &share("0.6 x plain"), "train::plain", &partner);
        assert_eq!(findings.len(), found, "{peak}");
        for finding in findings {
            assert_eq!((finding.code, finding.figure), (Code::PeakLimit, Some(601)));
            assert_eq!((finding.limit, finding.space), (Some(600), Some(GPU)));
            let said = "(limit 600 B): 0.6 x plain, and `train::plain` peaks at 1,000 B";
            assert!(finding.message.contains(said), "{}", finding.message);
        }
    }
}

#[test]
fn peaks_that_differ_from_run_to_run_are_judged_over_all_runs() {
    let of_peaks = |peaks: &[u64]| {
        let mut first = of_peak(peaks[0]);
        for &peak in &peaks[1..] {
            comparison::add(&mut first, comparison::compared(&of_peak(peak)));
        }
        first
    };
    let found = |own: &[u64], partner: &[u64]| {
        let runs = MeasuredRuns::of(&of_peaks(partner));
        let found = relative(&of_peaks(own), &share("0.6 x plain"), "plain", &runs);
        found.into_iter().next()
    };
    let code = |own: &[u64], partner: &[u64]| found(own, partner).map(|finding| finding.code);
    assert_eq!(code(&[590, 600], &[1000]), None);
    assert_eq!(code(&[600], &[1000, 1100]), None);
    assert_eq!(code(&[700, 601], &[1000, 900]), Some(Code::PeakLimit));
    assert_eq!(code(&[600, 601], &[1000]), Some(Code::Unstable));
    assert_eq!(code(&[601, 600], &[1000]), Some(Code::Unstable));
    assert_eq!(code(&[600], &[1000, 999]), Some(Code::Unstable));
    assert_eq!(code(&[601, 660], &[1100, 1000]), Some(Code::Unstable));
    let own = found(&[600, 660], &[1000, 1050]).unwrap();
    assert_eq!((own.figure, own.limit), (Some(660), Some(600)));
    assert_eq!(own.range.as_ref().unwrap().values, [600, 660]);
    assert_eq!(
        own.message,
        "the peak in cuda:0 is 600 B to 660 B in several runs (limit 600 B to 630 B): 0.6 x plain, \
         and `plain` peaks at 1,000 B to 1,050 B (1.03 KiB) in several runs; only some runs exceed \
         the limit"
    );
    assert_eq!(found(&[600], &[1000, 999]).unwrap().range, None);
}

#[test]
fn a_gpu_that_the_other_did_not_use_is_held_to_the_others_own() {
    let mut sharded = of_peak(400);
    let second = Space::Cuda(1);
    sharded.judged.push(second);
    sharded.spaces.insert(second, armed(Metrics { peak_allocated: 700, ..Metrics::default() }));
    let found =
        relative(&sharded, &share("0.6 x plain"), "plain", &MeasuredRuns::of(&of_peak(1000)));
    assert_eq!(found.iter().map(|finding| finding.space).collect::<Vec<_>>(), [Some(second)]);
}

#[test]
fn a_partner_is_a_path_or_the_only_end_of_one() {
    let tests = ["a", "m::a", "m::b", "n::b", "n::c", "of::seq_1", "of::seq_2"];
    let of = |test: &str, name: &str| {
        let limit = share(&format!("0.6 x {name}"));
        partner(test, &limit, "app::mem", tests.iter().copied()).map_err(|error| error.to_string())
    };
    assert_eq!(of("n::c", "a"), Ok("a"), "the whole path goes first");
    assert_eq!(of("a", "m::a"), Ok("m::a"));
    assert_eq!(of("a", "c"), Ok("n::c"));
    for (test, name, said) in [
        ("a", "b", "`b` is one of `m::b`, `n::b`: write more of its path"),
        ("a", "d", "app::mem has no test `d`: memcheck searches the same test target"),
        ("a", "of", "app::mem has no test `of`, but `of::seq_1`, `of::seq_2`"),
        ("n::c", "c", "`max_peak` of `n::c` is `0.6 x c`, which is a share of its own peak"),
        ("a", "x::c", "has no test `x::c`, but `n::c`"),
    ] {
        let error = of(test, name).expect_err(name);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_circle_that_shrinks_is_refused_and_one_that_does_not_is_none() {
    let circles = |limits: &[(&'static str, &'static str, u64)]| {
        let limits: BTreeMap<&str, (&str, Fraction)> = limits
            .iter()
            .map(|(test, of, tenths)| {
                (*test, (*of, Fraction::new(i128::from(*tenths), 10).unwrap()))
            })
            .collect();
        circle(&limits).map(|error| error.to_string())
    };
    let shrinking = circles(&[("a", "b", 6), ("b", "c", 11), ("c", "a", 12)]).unwrap();
    assert!(shrinking.ends_with("`a` of `b`, `b` of `c`, `c` of `a`"), "{shrinking}");
    // A circle whose factors multiply to 1 or more can hold.
    assert_eq!(circles(&[("a", "b", 11), ("b", "a", 11)]), None);
    assert_eq!(circles(&[("a", "b", 10), ("b", "a", 10)]), None);
    assert_eq!(circles(&[("a", "b", 1), ("b", "c", 1)]), None);
    assert!(circles(&[("z", "a", 1), ("a", "b", 9), ("b", "a", 9)]).is_some());
}

#[test]
fn a_baseline_stands_in_where_it_was_made_under_the_same_conditions() {
    let now = of_peak(7);
    let found = |facts: Facts| Baseline::Found {
        figures: Figures::of(&now),
        holders: Holders::default(),
        facts,
    };
    assert!(standing_in(&found(now.facts.clone()), &now.facts).is_ok());
    // Another test can have other iterations and another dtype.
    let other = Facts { iterations: 3, dtype: Some("f16".to_owned()), ..now.facts.clone() };
    assert!(standing_in(&found(other), &now.facts).is_ok());
    for (baseline, said) in [
        (Baseline::Missing, "has no baseline"),
        (Baseline::Off, "has no baseline"),
        (Baseline::Corrupt("torn".to_owned()), "cannot be used (torn)"),
        (
            found(Facts { candle: "0.1".into(), ..now.facts.clone() }),
            "another version of candle (0.1 -> 0.11.1)",
        ),
        (
            found(Facts { profile: "release".into(), ..now.facts.clone() }),
            "another build profile (release -> ",
        ),
        (
            found(Facts { threads: Some(4), ..now.facts.clone() }),
            "another number of threads (4 -> ",
        ),
        (
            found(Facts { arch: Some("riscv64".to_owned()), ..now.facts.clone() }),
            "another processor architecture (riscv64 -> x86_64)",
        ),
    ] {
        let why = standing_in(&baseline, &now.facts).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
}

fn case(values: &[(&str, &str)]) -> BTreeMap<String, String> {
    values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn peak_within(order: &str) -> Scaling {
    Scaling { metric: Metric::PeakAllocated, most: order.parse().unwrap() }
}

#[test]
fn two_whole_numbers_are_a_size_where_there_are_no_more() {
    let cases = [1, 8].map(|batch: u64| case(&[("batch", &batch.to_string())]));
    let found = families(&cases.iter().collect::<Vec<_>>(), &[peak_within("1")]);
    assert_eq!((found.len(), found[0].members.len()), (1, 2));
}

fn of_two(peak: fn(u64) -> u64, allowed: &str) -> (Vec<ScalingReport>, Vec<Finding>) {
    let records = [1, 8].map(|batch| (batch, of_peak(peak(batch))));
    let figures: Vec<(u64, Figures)> =
        records.iter().map(|(batch, record)| (*batch, Figures::of(record))).collect();
    let at = |batch: u64| Sizes::from([("batch".to_owned(), batch)]);
    let members: Vec<Member<'_>> =
        figures.iter().map(|(batch, figures)| Member { at: at(*batch), figures }).collect();
    let reports = scaling_reports(&members, &[peak_within(allowed)], |_| None);
    let findings = scaling(std::slice::from_ref(&reports), None, &records[1].1);
    (reports, findings)
}

#[test]
fn two_values_are_judged_by_their_step_and_say_that_it_confirms_no_law() {
    let said = "no exact law can be confirmed with so few values (2 of batch), about ";
    let (reports, findings) = of_two(|batch| 4_096 + 100 * batch, "batch");
    assert_eq!((reports[0].describe_law(), findings.len()), (format!("{said}batch"), 0));
    let (_, findings) = of_two(|batch| 100 * batch * batch, "batch");
    assert_eq!(findings[0].code, Code::Scaling);
    let message = format!("grows with about batch^2 over the cases (limit batch): {said}");
    assert!(findings[0].message.contains(&message), "{}", findings[0].message);
    assert_eq!(of_two(|batch| 4_096 + batch, "1").1.len(), 1, "what rises is not constant");
    let (reports, findings) = of_two(|_| 4_096, "1");
    assert_eq!((reports[0].describe_law().as_str(), findings.len()), ("4.00 KiB", 0));
}

#[test]
fn a_law_that_only_some_runs_break_is_unstable() {
    let figures = |peak| Figures::of(&of_peak(peak));
    let find = |peaks_of_eight: &[u64]| {
        let peaks: Vec<Figures> = peaks_of_eight.iter().copied().map(figures).collect();
        let unstable = MeasuredRuns { first: peaks[0].clone(), further: peaks[1..].to_vec() };
        let at = |batch: u64| Sizes::from([("batch".to_owned(), batch)]);
        let cases = [(at(1), MeasuredRuns::from(figures(100))), (at(8), unstable)];
        let laws: Vec<_> = members_of_runs(&cases)
            .iter()
            .map(|run| scaling_reports(run, &[peak_within("batch")], |_| None))
            .collect();
        assert_eq!(laws.len(), peaks_of_eight.len());
        scaling(&laws, None, &of_peak(peaks_of_eight[0]))
    };
    assert!(find(&[800, 799, 800]).is_empty());
    let every = find(&[6_400, 6_399, 6_400]);
    assert_eq!((every.len(), every[0].code), (1, Code::Scaling));
    for some in [[6_400, 800, 800], [800, 800, 6_400]] {
        let found = find(&some);
        assert_eq!((found.len(), found[0].code), (1, Code::Unstable));
        let text = "(limit batch): ";
        assert!(found[0].message.contains(text), "{}", found[0].message);
        assert!(found[0].message.ends_with("; only 1 of 3 runs have this law"), "{found:?}");
    }
}

#[test]
fn sizes_are_three_whole_numbers_and_the_rest_splits() {
    let mut cases = Vec::new();
    for dtype in ["f32", "bf16"] {
        for batch in ["1", "8"] {
            for seq in ["128", "64", "256"] {
                cases.push(case(&[("dtype", dtype), ("batch", batch), ("seq", seq)]));
            }
        }
    }
    let cases: Vec<&BTreeMap<String, String>> = cases.iter().collect();
    let families = |order: &str| families(&cases, &[peak_within(order)]);
    // An order that names `batch` makes it a size, so there is one family for each dtype.
    let named = families("batch*seq");
    assert_eq!((named.len(), named[0].members.len()), (2, 6));
    let families = families("seq");
    assert_eq!(families.len(), 4, "two batches are no size");
    assert_eq!(families[0].common, case(&[("batch", "1"), ("dtype", "bf16")]));
    let members: Vec<(u64, usize)> =
        families[0].members.iter().map(|(at, number)| (at["seq"], *number)).collect();
    assert_eq!(members, [(64, 7), (128, 6), (256, 8)]);
}

fn judged(
    peak: impl Fn(u64) -> u64,
    allowed: &str,
    accepted: Option<&str>,
) -> (Vec<ScalingReport>, Vec<Finding>) {
    let records: Vec<(u64, Record)> =
        [64, 128, 256, 512].into_iter().map(|seq| (seq, of_peak(peak(seq)))).collect();
    let figures: Vec<(u64, Figures)> =
        records.iter().map(|(seq, record)| (*seq, Figures::of(record))).collect();
    let members: Vec<Member<'_>> = figures
        .iter()
        .map(|(seq, figures)| Member { at: Sizes::from([("seq".to_owned(), *seq)]), figures })
        .collect();
    let asked = [Scaling { metric: Metric::PeakAllocated, most: allowed.parse().unwrap() }];
    let room = |_| Some(DeviceRoom { name: "rtx4090".to_owned(), bytes: 1 << 20 });
    let reports = scaling_reports(&members, &asked, room);
    let accepted = accepted.map(|law| {
        Laws::from_yaml(&format!("laws:\n  cuda:0:\n    peak_allocated: '{law}'")).unwrap()
    });
    let findings = scaling(std::slice::from_ref(&reports), accepted.as_ref(), &records[3].1);
    (reports, findings)
}

#[test]
fn a_law_is_told_with_what_fits_and_found_where_it_is_too_fast() {
    let square = |seq| 1024 + 16 * seq * seq;
    let (reports, findings) = judged(square, "seq^2", None);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(reports[0].law.describe(Metric::PeakAllocated), "1.00 KiB + 16 B*seq^2");
    // 1024 + 16 * 255² = 1,041,424 <= 1,048,576 < 1024 + 16 * 256².
    assert_eq!((reports[0].fits[0].upto, reports[0].fits[0].room.as_str()), (255, "rtx4090"));
    let (_, findings) = judged(square, "seq", None);
    assert_eq!(findings[0].code, Code::Scaling);
    let said = "`peak_allocated` of cuda:0 grows with seq^2 over the cases (limit seq)";
    assert!(findings[0].message.starts_with(said), "{}", findings[0].message);
    let constant = judged(|_| 4096, "1", None);
    assert_eq!((constant.0[0].law.to_string().as_str(), constant.1.len()), ("4096", 0));
    assert!(constant.0[0].fits.is_empty(), "every size fits");
}

#[test]
fn a_law_of_another_order_than_the_accepted_is_a_regression() {
    let line = |seq| 1024 + 16 * seq;
    for (accepted, found) in
        [("1024 + 16*seq", 0), ("9 + 7*seq", 0), ("3*seq^2", 0), ("4096", 1), ("about 1", 1)]
    {
        let (_, findings) = judged(line, "seq^2", Some(accepted));
        assert_eq!(findings.len(), found, "{accepted}");
        for finding in findings {
            let said = "grew with 1, and grows with seq now: 1.00 KiB + 16 B*seq, was ";
            assert!(finding.message.contains(said), "{}", finding.message);
        }
    }
}

#[test]
fn what_has_no_exact_law_is_judged_by_its_last_steps() {
    let uneven = |seq: u64| (5 * seq * seq).next_multiple_of(7000);
    let (reports, findings) = judged(uneven, "seq^2", None);
    assert_eq!((reports[0].law.to_string().as_str(), findings.len()), ("about seq^2", 0));
    let (_, findings) = judged(uneven, "seq", None);
    let said = "grows with about seq^2 over the cases (limit seq): no exact law";
    assert!(findings[0].message.contains(said), "{}", findings[0].message);
}

#[test]
fn an_accepted_law_holds_as_long_as_every_case_is_within_tolerance() {
    let (then, _) = judged(|seq| 4096 + 16 * seq, "seq", None);
    let accepted = Laws::of(&then);
    let holds = |off: u64, tolerance: &str| {
        let peaks: Vec<(u64, Figures)> = [64, 128, 256, 512]
            .into_iter()
            .map(|seq| (seq, Figures::of(&of_peak(4096 + 16 * seq + off))))
            .collect();
        let members: Vec<Member<'_>> = peaks
            .iter()
            .map(|(seq, figures)| Member { at: Sizes::from([("seq".to_owned(), *seq)]), figures })
            .collect();
        let (reports, _) = judged(|seq| 4096 + 16 * seq + off, "seq", None);
        unchanged(&accepted, &reports, &members, tolerance.parse().unwrap())
    };
    assert!(holds(0, "0%") && holds(8, "8 B") && holds(51, "1%"));
    assert!(!holds(8, "0%") && !holds(8, "7 B") && !holds(52, "1%"));
    assert!(!unchanged(&Laws::default(), &then, &[], "0%".parse().unwrap()));
}

#[test]
fn every_metric_is_one_that_a_baseline_keeps() {
    let figures = Figures::of(&of_peak(0));
    let mut names: Vec<&str> = Metric::NAMES.to_vec();
    names.sort_unstable();
    let kept: Vec<&str> = figures.0[&GPU].keys().map(String::as_str).collect();
    assert_eq!(names, kept);
    for name in names {
        assert_eq!(name.parse::<Metric>().unwrap().name(), name);
    }
}

#[test]
fn two_tests_with_one_baseline_are_refused() {
    let kept = |tests: &[(&str, &str)]| {
        let other = |&(test, snapshot): &(&str, &str)| Other {
            test: test.to_owned(),
            snapshot: snapshot.into(),
        };
        refuse_same_baseline(tests.iter().map(other)).map_err(|error| error.to_string())
    };
    assert_eq!(kept(&[("m::a", "mem__m__a@cpu.snap"), ("m::b", "mem__m__b@cpu.snap")]), Ok(()));
    assert_eq!(
        kept(&[("m::a", "s/mem__m__a@cpu.snap"), ("m__a", "s/mem__m__a@cpu.snap")]),
        Err("`m__a` and `m::a` have the same baseline, s/mem__m__a@cpu.snap".to_owned())
    );
}
