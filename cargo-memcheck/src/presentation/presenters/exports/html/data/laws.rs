//! The laws of a test over its cases, with the measured points and the curve.

use std::collections::BTreeMap;

use memcheck_core::law::Sizes;
use memcheck_core::runs::relations::families;
use memcheck_core::shape::{Scaling, ScalingReport, Shape};
use memcheck_core::size::exact;
use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::findings;

/// The law of one figure.
#[derive(Debug, Serialize)]
pub(in crate::presentation::presenters::exports::html) struct LawPlot {
    /// The index of the test that shows it.
    pub(in crate::presentation::presenters::exports::html) test: usize,
    text: String,
    allowed: String,
    space: String,
    metric: &'static str,
    /// The size on the horizontal axis.
    size: String,
    /// The other sizes, which the curve keeps at those of the largest case.
    with: String,
    points: Vec<Point>,
    /// Positions on the horizontal axis and values of the law.
    curve: Vec<(f64, u64)>,
}

#[derive(Debug, Serialize)]
struct Point {
    at: u64,
    value: u64,
    /// The sizes of the case.
    label: String,
}

/// Collects the figures of all cases, because a law belongs to several tests.
#[derive(Debug, Default)]
pub(in crate::presentation::presenters::exports::html) struct Laws {
    cases: BTreeMap<Key, Vec<Case>>,
    reports: Vec<FoundLaws>,
}

/// The laws that one test reports for all cases.
#[derive(Debug)]
struct FoundLaws {
    key: Key,
    number: usize,
    case: BTreeMap<String, String>,
    scaling: Vec<Scaling>,
    laws: Vec<ScalingReport>,
}

/// Binary, device and module path, which the cases of a test share.
type Key = (String, String, String);

#[derive(Debug)]
struct Case {
    case: BTreeMap<String, String>,
    figures: memcheck_core::judgement::baseline::Figures,
}

impl Laws {
    pub(in crate::presentation::presenters::exports::html) fn add(
        &mut self,
        number: usize,
        task: &Task,
        outcome: &TestOutcome,
    ) {
        let Some(report) = &outcome.report else { return };
        let Some(entry) = task.subject.test().filter(|entry| !entry.scaling.is_empty()) else {
            return;
        };
        let case = &entry.case;
        let key = (task.binary.id.clone(), task.leg.name(), entry.module.clone());
        let figures = memcheck_core::judgement::baseline::Figures::of(&report.record);
        self.cases.entry(key.clone()).or_default().push(Case { case: case.clone(), figures });
        if !outcome.across.laws.is_empty() {
            let (case, laws) = (case.clone(), outcome.across.laws.clone());
            self.reports.push(FoundLaws {
                key,
                number,
                case,
                scaling: entry.scaling.clone(),
                laws,
            });
        }
    }

    pub(in crate::presentation::presenters::exports::html) fn plots(&self) -> Vec<LawPlot> {
        let mut plots = Vec::new();
        for FoundLaws { key, number, case, scaling, laws } in &self.reports {
            let cases = self.cases.get(key).map(Vec::as_slice).unwrap_or_default();
            let names: Vec<&BTreeMap<String, String>> = cases.iter().map(|of| &of.case).collect();
            let family = families(&names, scaling).into_iter().find(|family| {
                family.members.iter().any(|(_, member)| cases[*member].case == *case)
            });
            let Some(family) = family else { continue };
            let members: Vec<(&Sizes, &Case)> =
                family.members.iter().map(|(at, member)| (at, &cases[*member])).collect();
            let plot = |report: &ScalingReport| self::plot(*number, report, &members);
            plots.extend(laws.iter().filter_map(plot));
        }
        plots
    }
}

/// The axis is the size with the most values.
fn plot(test: usize, report: &ScalingReport, members: &[(&Sizes, &Case)]) -> Option<LawPlot> {
    let (largest, _) = members.last()?;
    let values = |size: &String| {
        let mut values: Vec<u64> =
            members.iter().filter_map(|(at, _)| at.get(size).copied()).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let size = largest.keys().max_by_key(|size| values(size).len())?;
    let points: Vec<Point> = members
        .iter()
        .filter_map(|(at, case)| {
            let value = *case.figures.0.get(&report.space)?.get(report.metric.name())?;
            let sizes: Vec<String> = at.iter().map(|(name, n)| format!("{name} = {n}")).collect();
            Some(Point { at: *at.get(size)?, value, label: sizes.join(", ") })
        })
        .collect();
    let with: Vec<String> = largest
        .iter()
        .filter(|(name, _)| *name != size)
        .map(|(name, value)| format!("{name} = {}", exact(*value)))
        .collect();
    let mut lines = findings::laws(std::slice::from_ref(report), Verbosity::Normal).into_iter();
    Some(LawPlot {
        test,
        text: lines.by_ref().collect::<Vec<_>>().join("; "),
        allowed: report.allowed.to_string(),
        space: report.space.to_string(),
        metric: report.metric.name(),
        curve: curve(report, largest, size, &points),
        size: size.clone(),
        with: with.join(", "),
        points,
    })
}

/// A law is exact at whole sizes only, so that the curve has no values between them.
fn curve(report: &ScalingReport, largest: &Sizes, size: &str, points: &[Point]) -> Vec<(f64, u64)> {
    const STEPS: u64 = 64;
    let Shape::Law(law) = &report.law else { return Vec::new() };
    let Some(last) = points.iter().map(|point| point.at).max() else { return Vec::new() };
    let first = points.iter().map(|point| point.at).min().unwrap_or(0);
    let span = last.saturating_sub(first);
    let mut at: Vec<u64> = (0..=STEPS)
        .map(|step| first + (u128::from(span) * u128::from(step) / u128::from(STEPS)) as u64)
        .collect();
    at.dedup();
    let value = |at: u64| {
        let mut sizes = largest.clone();
        sizes.insert(size.to_owned(), at);
        Some((at as f64, law.at(&sizes)?))
    };
    at.into_iter().filter_map(value).collect()
}
