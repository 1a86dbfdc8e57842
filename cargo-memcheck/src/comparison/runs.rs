//! Compares two runs of the memory tests, such as those of a branch and of its base. It judges
//! nothing: limits and baselines have no part in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use memcheck_core::judgement::baseline::{self, Figures, Holders};
use memcheck_core::judgement::blame;
use memcheck_core::judgement::finding::{Class, Code, Finding, GrownHolder, Site};
use memcheck_core::judgement::verdict::{Status, Verdict};
use memcheck_core::measurement::phase;
use memcheck_core::measurement::record::Record;
use memcheck_core::space::Space;
use memcheck_core::tolerance::Tolerance;
use serde::{Deserialize, Serialize};

/// The figures that make a test worse if they rise. The others explain them.
const JUDGED: [&str; 4] = ["peak_allocated", "growth", "retained", "allocations"];

/// The identity of a test in both runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TestId {
    /// The package.
    pub(crate) package: String,
    /// The executable: `app::mem`.
    pub(crate) binary: String,
    /// The path of the test.
    pub(crate) test: String,
    /// The device of the run: `sim:h200`.
    pub(crate) device: String,
}

/// A test of one of the runs.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredTest<'a> {
    /// The test.
    pub(crate) id: TestId,
    /// Its verdict.
    pub(crate) verdict: &'a Verdict,
    /// Its measurements, if it has a complete record.
    pub(crate) record: Option<&'a Record>,
}

/// A figure that differs between the runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FigureChange {
    /// The memory space.
    pub(crate) space: Space,
    /// The name: `peak_allocated`.
    pub(crate) figure: String,
    /// The value in the base; absent if the base did not measure it.
    pub(crate) base: Option<u64>,
    /// The value in the head; absent if the head did not measure it.
    pub(crate) head: Option<u64>,
}

impl FigureChange {
    /// True if the unit is bytes.
    pub(crate) fn is_bytes(&self) -> bool {
        self.figure != "allocations"
    }

    /// The difference without its sign; 0 if one of the runs lacks the figure.
    pub(crate) fn difference(&self) -> u64 {
        self.base.zip(self.head).map_or(0, |(base, head)| base.abs_diff(head))
    }

    /// True if the figure makes the test worse.
    pub(crate) fn is_worse(&self) -> bool {
        let is_higher = self.base.zip(self.head).is_some_and(|(base, head)| head > base);
        let figure = phase::split(&self.figure).map_or(self.figure.as_str(), |(_, figure)| figure);
        is_higher && JUDGED.contains(&figure)
    }
}

/// A test that both runs have, and that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ChangedTest {
    /// The test.
    #[serde(flatten)]
    pub(crate) id: TestId,
    /// Its status in the base.
    pub(crate) base: Status,
    /// Its status in the head.
    pub(crate) head: Status,
    /// The figures that differ, the largest difference first.
    pub(crate) figures: Vec<FigureChange>,
    /// The holders that are new at the peak or hold more there, if both runs have call sites.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) grown: Vec<GrownHolder>,
    /// The holders that hold less at the peak.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) shrunk: Vec<GrownHolder>,
    /// Findings that only the head has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) new_findings: Vec<Code>,
    /// Findings that only the base has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gone_findings: Vec<Code>,
    /// The conditions that differ, such as the version of candle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conditions: Option<String>,
    /// True if a peak differs and one of the runs has no call sites that explain it.
    pub(crate) lacks_call_sites: bool,
}

impl ChangedTest {
    /// True if a judged figure rose, or if the test failed in the head only.
    pub(crate) fn is_worse(&self) -> bool {
        self.figures.iter().any(FigureChange::is_worse) || (self.head.fails() && !self.base.fails())
    }

    fn largest(&self) -> u64 {
        let bytes = self.figures.iter().filter(|figure| figure.is_bytes());
        bytes.map(FigureChange::difference).max().unwrap_or(0)
    }
}

/// A test that fails in the head, and for which no figure is compared: it is new, or fails in the base
/// in the same way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FailingTest {
    /// The test.
    #[serde(flatten)]
    pub(crate) id: TestId,
    /// True if only the head has it.
    pub(crate) new: bool,
    /// The findings that fail it.
    pub(crate) findings: Vec<Code>,
    /// The line of the first of them: `src/model.rs:20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
}

impl FailingTest {
    fn of(test: &MeasuredTest<'_>, new: bool) -> Option<Self> {
        let Verdict { status, findings, denied } = test.verdict;
        let fails = |finding: &&Finding| {
            finding.code.row().class != Class::Bookkeeping || denied.contains(&finding.code)
        };
        let failing = || findings.iter().filter(fails);
        let line = |finding: &Finding| {
            let at = finding.kept_through.as_ref().or(finding.keeps_at.as_ref())?;
            Path::new(&at.file).is_relative().then(|| format!("{}:{}", at.file, at.line))
        };
        let mut codes: Vec<Code> = failing().map(|finding| finding.code).collect();
        codes.dedup();
        let at = failing().next().and_then(line);
        status.fails().then(|| Self { id: test.id.clone(), new, findings: codes, at })
    }
}

/// The differences between two runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Tests that differ: the worse ones first, then by the largest difference in bytes.
    pub(crate) changed: Vec<ChangedTest>,
    /// Tests that only the head has.
    pub(crate) added: Vec<TestId>,
    /// Tests that only the base has.
    pub(crate) removed: Vec<TestId>,
    /// The number of tests whose figures and status are the same in both runs.
    pub(crate) unchanged: usize,
    /// Tests that fail in the head and are not in `changed`.
    pub(crate) failing: Vec<FailingTest>,
}

impl Comparison {
    /// The number of tests that are worse in the head. A new one is worse if it fails.
    pub(crate) fn worse(&self) -> usize {
        let changed = self.changed.iter().filter(|test| test.is_worse()).count();
        changed + self.failing.iter().filter(|test| test.new).count()
    }
}

/// Compares the tests of two runs. Figures within `tolerance` are the same; without one, the
/// tolerance of each test counts. Ignored tests are left out.
pub(crate) fn compare(
    base: &[MeasuredTest<'_>],
    head: &[MeasuredTest<'_>],
    tolerance: Option<Tolerance>,
) -> Comparison {
    let by_id = |tests: &'_ [MeasuredTest<'_>]| -> BTreeMap<TestId, usize> {
        let ran = tests.iter().enumerate();
        let ran = ran.filter(|(_, test)| test.verdict.status != Status::Ignored);
        ran.map(|(number, test)| (test.id.clone(), number)).collect()
    };
    let (of_base, of_head) = (by_id(base), by_id(head));
    let only = |these: &BTreeMap<TestId, usize>, others: &BTreeMap<TestId, usize>| {
        these.keys().filter(|id| !others.contains_key(id)).cloned().collect()
    };
    let mut comparison = Comparison {
        added: only(&of_head, &of_base),
        removed: only(&of_base, &of_head),
        ..Comparison::default()
    };
    for (id, &number) in &of_head {
        let other = of_base.get(id);
        match other.map(|&other| compare_test(&base[other], &head[number], tolerance)) {
            Some(Some(changed)) => comparison.changed.push(changed),
            same => {
                comparison.unchanged += usize::from(same.is_some());
                comparison.failing.extend(FailingTest::of(&head[number], same.is_none()));
            }
        }
    }
    comparison.changed.sort_by_key(|test| Reverse((test.is_worse(), test.largest())));
    comparison
}

/// `None` if the tests do not differ.
fn compare_test(
    base: &MeasuredTest<'_>,
    head: &MeasuredTest<'_>,
    tolerance: Option<Tolerance>,
) -> Option<ChangedTest> {
    let codes = |verdict: &Verdict| -> BTreeSet<Code> {
        verdict.findings.iter().map(|finding| finding.code).filter(is_about_the_test).collect()
    };
    let (then, now) = (codes(base.verdict), codes(head.verdict));
    let mut changed = ChangedTest {
        id: head.id.clone(),
        base: base.verdict.status,
        head: head.verdict.status,
        figures: Vec::new(),
        grown: Vec::new(),
        shrunk: Vec::new(),
        new_findings: now.difference(&then).copied().collect(),
        gone_findings: then.difference(&now).copied().collect(),
        conditions: None,
        lacks_call_sites: false,
    };
    if let (Some(then), Some(now)) = (base.record, head.record) {
        let tolerance = tolerance.unwrap_or(now.limits.tolerance.value);
        changed.figures = figures(then, now, tolerance);
        changed.conditions = baseline::other_conditions(&then.facts, &now.facts);
        (changed.grown, changed.shrunk) = holders(then, now, &changed.figures);
        let is_peak = |change: &FigureChange| change.figure == "peak_allocated";
        let has_call_sites = then.attribution.is_some() && now.attribution.is_some();
        let explained = (!has_call_sites).then(|| explained(&changed.figures, head.verdict));
        if let Some((grown, shrunk)) = explained.flatten() {
            (changed.grown, changed.shrunk) = (grown, shrunk);
        } else {
            changed.lacks_call_sites = changed.figures.iter().any(is_peak) && !has_call_sites;
        }
    }
    let is_same = changed.figures.is_empty()
        && changed.base.fails() == changed.head.fails()
        && changed.new_findings.is_empty()
        && changed.gone_findings.is_empty();
    (!is_same).then_some(changed)
}

/// The holders of a regression of the head whose baseline has the peak of the base: they explain the
/// same change.
fn explained(
    figures: &[FigureChange],
    head: &Verdict,
) -> Option<(Vec<GrownHolder>, Vec<GrownHolder>)> {
    let is_same = |finding: &&Finding| {
        finding.code == Code::PeakRegression
            && figures.iter().any(|change| {
                change.figure == "peak_allocated"
                    && finding.space == Some(change.space)
                    && change.base.is_some()
                    && (finding.baseline, finding.figure) == (change.base, change.head)
            })
    };
    let finding = head.findings.iter().find(is_same)?;
    let (grown, shrunk) = (finding.grown.clone(), finding.shrunk.clone());
    (!grown.is_empty()).then_some((grown, shrunk))
}

/// Bookkeeping and regressions are about a baseline, which can differ between the runs.
fn is_about_the_test(code: &Code) -> bool {
    let is_regression =
        matches!(code, Code::PeakRegression | Code::AllocationsRegression | Code::GrowthRegression);
    code.row().class != Class::Bookkeeping && !is_regression
}

fn figures(then: &Record, now: &Record, tolerance: Tolerance) -> Vec<FigureChange> {
    let changes = baseline::changes(&Figures::of(then), &Figures::of(now), tolerance);
    let mut figures: Vec<FigureChange> = changes
        .into_iter()
        .map(|change| FigureChange {
            space: change.space,
            figure: change.figure,
            base: change.then,
            head: change.now,
        })
        .collect();
    figures.sort_by_key(|it| Reverse((it.is_worse(), it.is_bytes(), it.difference())));
    figures
}

/// The holders of the spaces whose peaks differ. Both runs must have call sites.
fn holders(
    then: &Record,
    now: &Record,
    figures: &[FigureChange],
) -> (Vec<GrownHolder>, Vec<GrownHolder>) {
    let (mut grown, mut shrunk) = (Vec::new(), Vec::new());
    let before = Holders::of(then);
    let peaks = figures.iter().filter(|change| change.figure == "peak_allocated");
    for space in peaks.map(|change| change.space) {
        let sites = blame::at_peak(now, space);
        let placed = |mut holder: GrownHolder| {
            let site = sites.iter().find(|site| blame::label(site) == holder.holder);
            holder.place = site.and_then(Site::place);
            holder
        };
        let changes = before.changes(now, space);
        grown.extend(changes.grown.into_iter().map(placed));
        shrunk.extend(changes.shrunk.into_iter().map(placed));
    }
    (grown, shrunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_core::judgement::finding::HeadLine;
    use memcheck_core::measurement::record::Metrics;
    use memcheck_core::runs::report::Report;
    use memcheck_core::wire::example;

    fn verdict(codes: &[Code]) -> Verdict {
        let status = if codes.is_empty() { Status::Passed } else { Status::Failed };
        let findings = codes.iter().map(|code| Finding::new(*code, "message")).collect();
        Verdict { status, findings, denied: Vec::new() }
    }

    fn id(test: &str) -> TestId {
        let (package, binary) = ("app".to_owned(), "app::mem".to_owned());
        TestId { package, binary, test: test.to_owned(), device: "sim:h200".to_owned() }
    }

    fn run(peak: u64) -> Record {
        let mut record = serde_json::from_value::<Report>(example::report()).unwrap().record;
        let metrics = Metrics { peak_allocated: peak, setup: 4, ..Metrics::default() };
        record.spaces.get_mut(&Space::Host).unwrap().metrics = metrics;
        record
    }

    /// Tests with a name, a peak and findings.
    type Tests<'a> = &'a [(&'a str, u64, &'a [Code])];

    fn compared(base: Tests<'_>, head: Tests<'_>) -> Comparison {
        let owned = |tests: Tests<'_>| -> Vec<(TestId, Verdict, Record)> {
            let test =
                |(name, peak, codes): &(&str, u64, &[Code])| (id(name), verdict(codes), run(*peak));
            tests.iter().map(test).collect()
        };
        let (base, head) = (owned(base), owned(head));
        fn borrowed(tests: &[(TestId, Verdict, Record)]) -> Vec<MeasuredTest<'_>> {
            let test = |(id, verdict, record)| MeasuredTest { id, verdict, record: Some(record) };
            tests.iter().map(|(id, verdict, record)| test((id.clone(), verdict, record))).collect()
        }
        compare(&borrowed(&base), &borrowed(&head), Some(Tolerance::NONE))
    }

    #[test]
    fn tests_that_do_not_differ_are_counted_and_the_largest_change_is_first() {
        let base: Tests<'_> = &[
            ("same", 8, &[]),
            ("small", 8, &[]),
            ("large", 8, &[]),
            ("better", 1 << 20, &[]),
            ("gone", 1, &[]),
        ];
        let head: Tests<'_> = &[
            ("same", 8, &[]),
            ("small", 9, &[]),
            ("large", 99, &[]),
            ("better", 8, &[]),
            ("new", 1, &[]),
        ];
        let comparison = compared(base, head);
        let names: Vec<&str> = comparison.changed.iter().map(|it| it.id.test.as_str()).collect();
        assert_eq!(names, ["large", "small", "better"]);
        assert_eq!((comparison.unchanged, comparison.worse()), (1, 2));
        assert_eq!((comparison.added, comparison.removed), (vec![id("new")], vec![id("gone")]));
        let peak = &comparison.changed[0].figures[0];
        assert_eq!((peak.space, peak.figure.as_str()), (Space::Host, "peak_allocated"));
        assert_eq!((peak.base, peak.head, peak.is_worse()), (Some(8), Some(99), true));
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let tests: Tests<'_> = &[("a", 8, &[]), ("b", 9, &[Code::Leak])];
        let comparison = compared(tests, tests);
        let failing =
            vec![FailingTest { id: id("b"), new: false, findings: vec![Code::Leak], at: None }];
        assert_eq!(comparison.worse(), 0, "it fails in both");
        assert_eq!(comparison, Comparison { unchanged: 2, failing, ..Comparison::default() });
    }

    #[test]
    fn a_regression_from_the_figure_of_the_base_explains_a_change_without_call_sites() {
        let compared = |baseline| {
            let holder = GrownHolder { now: 91, ..GrownHolder::default() };
            let mut verdict = verdict(&[Code::PeakRegression]);
            let finding = &mut verdict.findings[0];
            (finding.space, finding.baseline) = (Some(Space::Host), Some(baseline));
            (finding.figure, finding.grown) = (Some(99), vec![holder]);
            let passed = self::verdict(&[]);
            let (mut then, now) = (run(8), run(99));
            then.attribution = None;
            let test =
                |verdict, record| MeasuredTest { id: id("a"), verdict, record: Some(record) };
            let (base, head) = (test(&passed, &then), test(&verdict, &now));
            let changed = compare_test(&base, &head, Some(Tolerance::NONE)).unwrap();
            (changed.grown.len(), changed.lacks_call_sites)
        };
        assert_eq!(compared(8), (1, false));
        assert_eq!(compared(9), (0, true), "the baseline is not the base");
    }

    #[test]
    fn a_new_test_that_fails_is_worse_and_has_the_line_to_look_at() {
        let comparison = compared(&[], &[("a", 8, &[Code::Leak]), ("b", 8, &[])]);
        assert_eq!((comparison.added.len(), comparison.worse()), (2, 1));
        assert_eq!(
            (comparison.failing[0].id.test.as_str(), comparison.failing[0].new),
            ("a", true)
        );
        let line = |file: &str| Some(HeadLine { file: file.to_owned(), line: 7, function: None });
        let at = |keeps_at, kept_through| {
            let mut verdict = verdict(&[Code::MissingBaseline, Code::Leak]);
            verdict.findings[1] = Finding { keeps_at, kept_through, ..verdict.findings[1].clone() };
            let test = MeasuredTest { id: id("a"), verdict: &verdict, record: None };
            let failing = FailingTest::of(&test, true).unwrap();
            assert_eq!(
                failing.findings,
                [Code::Leak],
                "a baseline that is missing does not fail it"
            );
            failing.at
        };
        assert_eq!(at(line("a.rs"), None).as_deref(), Some("a.rs:7"));
        assert_eq!(at(line("a.rs"), line("b.rs")).as_deref(), Some("b.rs:7"));
        assert_eq!(at(line("/registry/a.rs"), None), None);
    }

    #[test]
    fn a_finding_is_a_change_unless_it_is_about_a_baseline() {
        let failing = compared(&[("a", 8, &[])], &[("a", 8, &[Code::Leak])]);
        assert_eq!(failing.changed[0].new_findings, [Code::Leak]);
        assert_eq!(failing.worse(), 1);
        let repaired = compared(&[("a", 8, &[Code::Leak])], &[("a", 8, &[])]);
        assert_eq!(
            (repaired.changed[0].gone_findings.as_slice(), repaired.worse()),
            (&[Code::Leak][..], 0)
        );
        let other = compared(
            &[("a", 8, &[Code::Leak])],
            &[("a", 8, &[Code::Leak, Code::PeakRegression, Code::MissingBaseline])],
        );
        assert_eq!(other.unchanged, 1);
    }

    #[test]
    fn the_tolerance_of_the_test_counts_unless_another_is_given() {
        let (then, now, passed) = (run(1_000_000), run(1_000_001), verdict(&[]));
        fn test<'a>(record: &'a Record, verdict: &'a Verdict) -> [MeasuredTest<'a>; 1] {
            [MeasuredTest { id: id("a"), verdict, record: Some(record) }]
        }
        let mut tolerant = now.clone();
        tolerant.limits.tolerance.value = "1%".parse().unwrap();
        let changed = |now: &Record, tolerance| {
            compare(&test(&then, &passed), &test(now, &passed), tolerance).changed.len()
        };
        assert_eq!(changed(&tolerant, None), 0);
        assert_eq!(changed(&tolerant, Some(Tolerance::NONE)), 1);
    }

    #[test]
    fn ignored_tests_and_tests_without_a_record_have_no_figures() {
        let (ignored, failed, passed) = (
            Verdict { status: Status::Ignored, ..verdict(&[]) },
            verdict(&[Code::Crashed]),
            verdict(&[]),
        );
        let record = run(8);
        let of = |verdict, record| [MeasuredTest { id: id("a"), verdict, record }];
        let none = compare(&of(&ignored, None), &of(&ignored, None), None);
        assert_eq!(none, Comparison::default());
        let crashed = compare(&of(&passed, Some(&record)), &of(&failed, None), None);
        assert_eq!((crashed.changed[0].figures.len(), crashed.worse()), (0, 1));
    }
}
